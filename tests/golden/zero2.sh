# zero2: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/zero2"

# train (sft)
#   --output_dir ${{ here.output }}: one folder inside the run, so that later steps and retries find it
#   --add_version false: no dated sub-folder: one folder and one logging.jsonl over all retries
#   --check_model false: offline, ms-swift's look at the hub costs 22 s and no variable avoids it
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
#   NPROC_PER_NODE=4: one process per device (guide, FAQ Q7)
#   MASTER_PORT=${{ here.port.master }}: a port that no other job on this host uses
mkdir -p "$RUN/steps/train/output"
ASCEND_RT_VISIBLE_DEVICES=0,1,2,3 \
  NPROC_PER_NODE=4 \
  MASTER_PORT=29500 \
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
  --deepspeed zero2 \
  --output_dir "$RUN/steps/train/output" \
  --add_version false \
  --check_model false
