# cpt: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/cpt"

# train (pt)
#   --output_dir ${{ here.output }}: one folder inside the run, so that later steps and retries find it
#   --add_version false: no dated sub-folder: one folder and one logging.jsonl over all retries
#   --check_model false: offline, ms-swift's look at the hub costs 22 s and no variable avoids it
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
#   NPROC_PER_NODE=8: one process per device (guide, FAQ Q7)
#   MASTER_PORT=${{ here.port.master }}: a port that no other job on this host uses
mkdir -p "$RUN/steps/train/output"
ASCEND_RT_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \
  NPROC_PER_NODE=8 \
  MASTER_PORT=29500 \
  swift pt \
  --model Qwen/Qwen3-8B \
  --dataset 'swift/chinese-c4#20000' \
  --split_dataset_ratio 0.01 \
  --torch_dtype bfloat16 \
  --tuner_type full \
  --num_train_epochs 1 \
  --per_device_train_batch_size 1 \
  --gradient_accumulation_steps 16 \
  --learning_rate 1e-05 \
  --max_length 4096 \
  --truncation_strategy split \
  --deepspeed zero3 \
  --save_steps 200 \
  --save_total_limit 2 \
  --output_dir "$RUN/steps/train/output" \
  --add_version false \
  --check_model false
