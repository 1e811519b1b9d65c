# megatron-grpo: stack swift-4.5-cann9.1, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/megatron-grpo"

# train (megatron-rlhf)
#   --output_dir ${{ here.output }}: one folder inside the run, so that later steps and retries find it
#   --add_version false: no dated sub-folder: one folder and one logging.jsonl over all retries
#   --check_model false: offline, ms-swift's look at the hub costs 22 s and no variable avoids it
#   NPROC_PER_NODE=8: megatron commands run under torchrun
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
#   MASTER_PORT=${{ here.port.master }}: a port that no other job on this host uses
#   PYTHONPATH=/opt/Megatron-LM: the same Megatron-LM as MEGATRON_LM_PATH (guide, FAQ Q14)
mkdir -p "$RUN/steps/train/output"
MEGATRON_LM_PATH=/opt/Megatron-LM \
  USE_MCORE_GDN=1 \
  TASK_QUEUE_ENABLE=0 \
  VLLM_ASCEND_ENABLE_NZ=0 \
  NPROC_PER_NODE=8 \
  ASCEND_RT_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \
  MASTER_PORT=29500 \
  PYTHONPATH=/opt/Megatron-LM"${PYTHONPATH:+:$PYTHONPATH}" \
  megatron rlhf \
  --rlhf_type grpo \
  --model Qwen/Qwen3.5-4B \
  --dataset 'AI-MO/NuminaMath-TIR#5000' \
  --save_safetensors true \
  --merge_lora true \
  --tuner_type lora \
  --lora_rank 8 \
  --lora_alpha 32 \
  --target_modules all-linear \
  --tensor_model_parallel_size 2 \
  --reward_funcs accuracy format \
  --use_vllm true \
  --vllm_mode colocate \
  --vllm_gpu_memory_utilization 0.4 \
  --vllm_max_model_len 3072 \
  --sleep_level 1 \
  --num_generations 8 \
  --max_length 2048 \
  --max_completion_length 1024 \
  --micro_batch_size 1 \
  --global_batch_size 32 \
  --num_train_epochs 1 \
  --lr 5e-05 \
  --packing false \
  --padding_free false \
  --save_steps 100 \
  --output_dir "$RUN/steps/train/output" \
  --add_version false \
  --check_model false
