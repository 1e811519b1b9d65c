# quickstart: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/quickstart"
INSIDE=$(runner plan --inside)   # the scripts that ship with the runner
set -m   # each service is a process group of its own, to be ended as a whole

# train (sft)
#   --output_dir ${{ here.output }}: one folder inside the run, so that later steps and retries find it
#   --add_version false: no dated sub-folder: one folder and one logging.jsonl over all retries
#   --check_model false: offline, ms-swift's look at the hub costs 22 s and no variable avoids it
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
mkdir -p "$RUN/steps/train/output"
ASCEND_RT_VISIBLE_DEVICES=0 \
  swift sft \
  --model Qwen/Qwen3-0.6B \
  --dataset 'AI-ModelScope/alpaca-gpt4-data-zh#1000' \
  --split_dataset_ratio 0.01 \
  --torch_dtype bfloat16 \
  --tuner_type lora \
  --target_modules all-linear \
  --lora_rank 8 \
  --lora_alpha 32 \
  --num_train_epochs 1 \
  --per_device_train_batch_size 1 \
  --per_device_eval_batch_size 1 \
  --gradient_accumulation_steps 8 \
  --learning_rate 0.0001 \
  --max_length 2048 \
  --save_steps 100 \
  --eval_steps 100 \
  --save_total_limit 2 \
  --logging_steps 10 \
  --output_dir "$RUN/steps/train/output" \
  --add_version false \
  --check_model false

# merge (merge), after train
#   --merge_lora true: kind merge
#   --output_dir ${{ here.output }}/model: a fixed place that later steps and retries find
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
#   verify_merge.py: a merge is verified, not assumed (`verify: false` skips it)
mkdir -p "$RUN/steps/merge/output"
TRAIN_CHECKPOINT=$(ls -d "$RUN/steps/train/output"/checkpoint-* | grep -v -- -merged | sort -V | tail -n 1)
ASCEND_RT_VISIBLE_DEVICES=0 \
  swift export \
  --adapters "${TRAIN_CHECKPOINT}" \
  --merge_lora true \
  --output_dir "$RUN/steps/merge/output/model"
ASCEND_RT_VISIBLE_DEVICES=0 \
  python "$INSIDE/verify_merge.py" \
  --adapter "${TRAIN_CHECKPOINT}" \
  --merged "$RUN/steps/merge/output/model" \
  --out "$RUN/steps/merge/output/verify.json"

# infer (infer), after merge
#   --val_dataset ${{ here.dir }}/prompts.jsonl: the step's `prompts`, one row each
#   --result_path ${{ here.output }}/result.jsonl: a fixed place that later steps find
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
mkdir -p "$RUN/steps/infer/output"
MERGE_MODEL="$RUN/steps/merge/output/model"
cat > "$RUN/steps/infer/prompts.jsonl" <<'EOF'
{"messages": [{"role": "user", "content": "用一句话介绍昇腾NPU。"}]}
{"messages": [{"role": "user", "content": "什么是 LoRA 微调？"}]}
EOF
ASCEND_RT_VISIBLE_DEVICES=0 \
  swift infer \
  --model "${MERGE_MODEL}" \
  --stream true \
  --temperature 0 \
  --max_new_tokens 512 \
  --val_dataset "$RUN/steps/infer/prompts.jsonl" \
  --result_path "$RUN/steps/infer/output/result.jsonl"

# serve (serve), after infer, merge
#   --host 127.0.0.1: only this host reaches it; `host: 0.0.0.0` in args opens it to the network
#   --port ${{ here.port.http }}: a leased port: ms-swift silently moves to another one when a port is busy
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
mkdir -p "$RUN/steps/serve/output"
MERGE_MODEL="$RUN/steps/merge/output/model"
ASCEND_RT_VISIBLE_DEVICES=0 \
  swift deploy \
  --model "${MERGE_MODEL}" \
  --max_new_tokens 512 \
  --served_model_name npu-modelscope-qwen3-0_6b \
  --host 127.0.0.1 \
  --port 8000 &
SERVE_PID=$!
until curl -sf http://127.0.0.1:8000/v1/models >/dev/null; do sleep 1; done

# ask (probe), after serve
mkdir -p "$RUN/steps/ask/output"
SERVE_ENDPOINT=http://127.0.0.1:8000
cat > "$RUN/steps/ask/request.json" <<EOF
{
 "url": "${SERVE_ENDPOINT}",
 "path": "/v1/chat/completions",
 "body": {
  "model": "npu-modelscope-qwen3-0_6b",
  "messages": [
   {
    "role": "user",
    "content": "用一句话介绍昇腾NPU。"
   }
  ],
  "max_tokens": 128,
  "temperature": 0
 },
 "expect": null,
 "timeout_s": 300.0,
 "out": "$RUN/steps/ask/output/answer.json"
}
EOF
python "$INSIDE/probe.py" "$RUN/steps/ask/request.json"

kill -- -$SERVE_PID   # serve
