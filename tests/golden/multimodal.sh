# multimodal: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/multimodal"

# train (sft)
#   --output_dir ${{ here.output }}: one folder inside the run, so that later steps and retries find it
#   --add_version false: no dated sub-folder: one folder and one logging.jsonl over all retries
#   --check_model false: offline, ms-swift's look at the hub costs 22 s and no variable avoids it
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
#   NPROC_PER_NODE=4: one process per device (guide, FAQ Q7)
#   MASTER_PORT=${{ here.port.master }}: a port that no other job on this host uses
mkdir -p "$RUN/steps/train/output"
MAX_PIXELS=1003520 \
  ASCEND_RT_VISIBLE_DEVICES=0,1,2,3 \
  NPROC_PER_NODE=4 \
  MASTER_PORT=29500 \
  swift sft \
  --model Qwen/Qwen2.5-VL-7B-Instruct \
  --dataset 'AI-ModelScope/LaTeX_OCR:human_handwrite#5000' \
  --split_dataset_ratio 0.01 \
  --torch_dtype bfloat16 \
  --attn_impl flash_attention_2 \
  --tuner_type lora \
  --target_modules all-linear \
  --freeze_vit true \
  --freeze_aligner true \
  --lora_rank 8 \
  --lora_alpha 32 \
  --packing true \
  --max_length 4096 \
  --num_train_epochs 1 \
  --per_device_train_batch_size 1 \
  --gradient_accumulation_steps 4 \
  --learning_rate 0.0001 \
  --deepspeed zero2 \
  --dataset_num_proc 4 \
  --dataloader_num_workers 4 \
  --save_steps 100 \
  --save_total_limit 2 \
  --output_dir "$RUN/steps/train/output" \
  --add_version false \
  --check_model false
