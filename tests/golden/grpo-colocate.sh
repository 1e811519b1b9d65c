# grpo-colocate: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/grpo-colocate"

# train (rlhf)
#   --output_dir ${{ here.output }}: one folder inside the run, so that later steps and retries find it
#   --add_version false: no dated sub-folder: one folder and one logging.jsonl over all retries
#   --check_model false: offline, ms-swift's look at the hub costs 22 s and no variable avoids it
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
#   NPROC_PER_NODE=8: one process per device (guide, FAQ Q7)
#   MASTER_PORT=${{ here.port.master }}: a port that no other job on this host uses
mkdir -p "$RUN/steps/train/output"
TASK_QUEUE_ENABLE=0 \
  VLLM_ASCEND_ENABLE_NZ=0 \
  ASCEND_RT_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \
  NPROC_PER_NODE=8 \
  MASTER_PORT=29500 \
  swift rlhf \
  --rlhf_type grpo \
  --model Qwen/Qwen2.5-7B-Instruct \
  --dataset 'AI-MO/NuminaMath-TIR#5000' \
  --split_dataset_ratio 0.01 \
  --reward_funcs accuracy format \
  --torch_dtype bfloat16 \
  --tuner_type lora \
  --target_modules all-linear \
  --lora_rank 8 \
  --lora_alpha 32 \
  --use_vllm true \
  --vllm_mode colocate \
  --vllm_gpu_memory_utilization 0.4 \
  --vllm_max_model_len 3072 \
  --sleep_level 1 \
  --num_generations 8 \
  --max_length 2048 \
  --max_completion_length 1024 \
  --temperature 1.0 \
  --beta 0.04 \
  --num_train_epochs 1 \
  --per_device_train_batch_size 4 \
  --gradient_accumulation_steps 2 \
  --learning_rate 1e-05 \
  --deepspeed zero2 \
  --log_completions true \
  --save_steps 100 \
  --save_total_limit 2 \
  --output_dir "$RUN/steps/train/output" \
  --add_version false \
  --check_model false
