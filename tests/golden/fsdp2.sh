# fsdp2: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/fsdp2"

# train (sft)
#   --output_dir ${{ here.output }}: one folder inside the run, so that later steps and retries find it
#   --add_version false: no dated sub-folder: one folder and one logging.jsonl over all retries
#   --check_model false: offline, ms-swift's look at the hub costs 22 s and no variable avoids it
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
#   NPROC_PER_NODE=8: one process per device (guide, FAQ Q7)
#   MASTER_PORT=${{ here.port.master }}: a port that no other job on this host uses
mkdir -p "$RUN/steps/train/output"
TASK_QUEUE_ENABLE=2 \
  CPU_AFFINITY_CONF=2 \
  PYTORCH_NPU_ALLOC_CONF=expandable_segments:True \
  ASCEND_RT_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \
  NPROC_PER_NODE=8 \
  MASTER_PORT=29500 \
  swift sft \
  --model Qwen/Qwen3-8B \
  --dataset 'AI-ModelScope/alpaca-gpt4-data-zh#2000' \
  --split_dataset_ratio 0.01 \
  --torch_dtype bfloat16 \
  --tuner_type lora \
  --target_modules all-linear \
  --lora_rank 8 \
  --lora_alpha 32 \
  --num_train_epochs 1 \
  --per_device_train_batch_size 1 \
  --gradient_accumulation_steps 8 \
  --learning_rate 0.0001 \
  --max_length 2048 \
  --gradient_checkpointing false \
  --fsdp fsdp2 \
  --save_steps 100 \
  --eval_steps 100 \
  --save_total_limit 2 \
  --output_dir "$RUN/steps/train/output" \
  --add_version false \
  --check_model false
