# megatron-lora: stack swift-4.5-cann9.1, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/megatron-lora"

# train (megatron-sft)
#   --output_dir ${{ here.output }}: one folder inside the run, so that later steps and retries find it
#   --add_version false: no dated sub-folder: one folder and one logging.jsonl over all retries
#   --check_model false: offline, ms-swift's look at the hub costs 22 s and no variable avoids it
#   NPROC_PER_NODE=4: megatron commands run under torchrun
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
#   MASTER_PORT=${{ here.port.master }}: a port that no other job on this host uses
#   PYTHONPATH=/opt/Megatron-LM: the same Megatron-LM as MEGATRON_LM_PATH (guide, FAQ Q14)
mkdir -p "$RUN/steps/train/output"
MEGATRON_LM_PATH=/opt/Megatron-LM \
  PYTORCH_NPU_ALLOC_CONF=expandable_segments:True \
  NPROC_PER_NODE=4 \
  ASCEND_RT_VISIBLE_DEVICES=0,1,2,3 \
  MASTER_PORT=29500 \
  PYTHONPATH=/opt/Megatron-LM"${PYTHONPATH:+:$PYTHONPATH}" \
  megatron sft \
  --model Qwen/Qwen3-8B \
  --dataset 'AI-ModelScope/alpaca-gpt4-data-zh#2000' \
  --save_safetensors true \
  --tuner_type lora \
  --lora_rank 8 \
  --lora_alpha 32 \
  --target_modules all-linear \
  --tensor_model_parallel_size 2 \
  --pipeline_model_parallel_size 2 \
  --sequence_parallel true \
  --micro_batch_size 1 \
  --global_batch_size 16 \
  --num_train_epochs 1 \
  --lr 0.0001 \
  --lr_warmup_fraction 0.05 \
  --min_lr 1e-05 \
  --max_length 2048 \
  --recompute_granularity full \
  --recompute_method uniform \
  --recompute_num_layers 1 \
  --save_steps 100 \
  --output_dir "$RUN/steps/train/output" \
  --add_version false \
  --check_model false
