# lora-1card: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/lora-1card"

# train (sft)
#   --output_dir ${{ here.output }}: one folder inside the run, so that later steps and retries find it
#   --add_version false: no dated sub-folder: one folder and one logging.jsonl over all retries
#   --check_model false: offline, ms-swift's look at the hub costs 22 s and no variable avoids it
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
mkdir -p "$RUN/steps/train/output"
ASCEND_RT_VISIBLE_DEVICES=0 \
  swift sft \
  --model Qwen/Qwen2-7B-Instruct \
  --dataset AI-ModelScope/blossom-math-v2 \
  --split_dataset_ratio 0.01 \
  --num_train_epochs 5 \
  --tuner_type lora \
  --learning_rate 0.0001 \
  --gradient_accumulation_steps 16 \
  --save_steps 100 \
  --eval_steps 100 \
  --output_dir "$RUN/steps/train/output" \
  --add_version false \
  --check_model false
