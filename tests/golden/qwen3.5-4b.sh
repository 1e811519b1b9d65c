# qwen3.5-4b: stack swift-4.5-cann9.1, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/qwen3.5-4b"

# train (sft)
#   --output_dir ${{ here.output }}: one folder inside the run, so that later steps and retries find it
#   --add_version false: no dated sub-folder: one folder and one logging.jsonl over all retries
#   --check_model false: offline, ms-swift's look at the hub costs 22 s and no variable avoids it
#   --enable_jit_checkpoint true: without it ms-swift writes no checkpoint when it is stopped
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
#   NPROC_PER_NODE=4: one process per device (guide, FAQ Q7)
#   MASTER_PORT=${{ here.port.master }}: a port that no other job on this host uses
mkdir -p "$RUN/steps/train/output"
ASCEND_RT_VISIBLE_DEVICES=0,1,2,3 \
  NPROC_PER_NODE=4 \
  MASTER_PORT=29500 \
  swift sft \
  --model Qwen/Qwen3.5-4B \
  --dataset 'AI-ModelScope/alpaca-gpt4-data-zh#2000' \
  --split_dataset_ratio 0.01 \
  --torch_dtype bfloat16 \
  --num_train_epochs 1 \
  --tuner_type lora \
  --target_modules all-linear \
  --lora_rank 8 \
  --lora_alpha 32 \
  --per_device_train_batch_size 1 \
  --per_device_eval_batch_size 1 \
  --gradient_accumulation_steps 8 \
  --learning_rate 0.0001 \
  --max_length 2048 \
  --group_by_length true \
  --dataset_num_proc 4 \
  --dataloader_num_workers 4 \
  --save_steps 100 \
  --eval_steps 100 \
  --save_total_limit 2 \
  --enable_npu_model_patch true \
  --output_dir "$RUN/steps/train/output" \
  --add_version false \
  --check_model false \
  --enable_jit_checkpoint true
