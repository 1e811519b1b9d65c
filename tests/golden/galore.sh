# galore: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/galore"

# train (sft)
#   --output_dir ${{ here.output }}: one folder inside the run, so that later steps and retries find it
#   --add_version false: no dated sub-folder: one folder and one logging.jsonl over all retries
#   --check_model false: offline, ms-swift's look at the hub costs 22 s and no variable avoids it
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
mkdir -p "$RUN/steps/train/output"
ASCEND_RT_VISIBLE_DEVICES=0 \
  swift sft \
  --model Qwen/Qwen2.5-1.5B-Instruct \
  --dataset 'AI-ModelScope/alpaca-gpt4-data-zh#2000' \
  --split_dataset_ratio 0.01 \
  --torch_dtype bfloat16 \
  --tuner_type full \
  --use_galore true \
  --galore_rank 128 \
  --galore_update_proj_gap 50 \
  --optim adamw_torch \
  --num_train_epochs 1 \
  --per_device_train_batch_size 1 \
  --gradient_accumulation_steps 8 \
  --learning_rate 1e-05 \
  --max_length 2048 \
  --save_steps 100 \
  --save_total_limit 2 \
  --output_dir "$RUN/steps/train/output" \
  --add_version false \
  --check_model false
