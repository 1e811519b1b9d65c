# quickstart-cpu: stack cpu, generation cpu
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/quickstart-cpu"
INSIDE=$(runner plan --inside)   # the scripts that ship with the runner
set -m   # each service is a process group of its own, to be ended as a whole

# base (command)
mkdir -p "$RUN/steps/base/output"
cat > "$RUN/steps/base/script.sh" <<'EOF'
python tiny/make_tiny.py --out "$RUNNER_OUTPUT/model"
EOF
HF_HUB_OFFLINE=1 \
  OMP_NUM_THREADS=2 \
  RUNNER_OUTPUT="$RUN/steps/base/output" \
  sh -eu "$RUN/steps/base/script.sh"

# train (sft), after base
#   --output_dir ${{ here.output }}: one folder inside the run, so that later steps and retries find it
#   --add_version false: no dated sub-folder: one folder and one logging.jsonl over all retries
#   --check_model false: offline, ms-swift's look at the hub costs 22 s and no variable avoids it
#   --use_cpu true: on the CPU two processes would be two unsynchronised trainings without it
#   --enable_jit_checkpoint true: without it ms-swift writes no checkpoint when it is stopped
mkdir -p "$RUN/steps/train/output"
BASE_OUTPUT_DIR="$RUN/steps/base/output"
HF_HUB_OFFLINE=1 \
  OMP_NUM_THREADS=2 \
  swift sft \
  --model "${BASE_OUTPUT_DIR}/model" \
  --model_type qwen3 \
  --template qwen3 \
  --dataset tiny/train.jsonl \
  --split_dataset_ratio 0 \
  --tuner_type lora \
  --lora_rank 32 \
  --lora_alpha 64 \
  --target_modules all-linear \
  --torch_dtype float32 \
  --learning_rate 0.01 \
  --num_train_epochs 30 \
  --per_device_train_batch_size 8 \
  --gradient_accumulation_steps 1 \
  --max_length 256 \
  --logging_steps 10 \
  --save_steps 90 \
  --seed 42 \
  --data_seed 42 \
  --dataset_num_proc 1 \
  --dataloader_num_workers 0 \
  --report_to none \
  --output_dir "$RUN/steps/train/output" \
  --add_version false \
  --check_model false \
  --use_cpu true \
  --enable_jit_checkpoint true

# merge (merge), after train
#   --merge_lora true: kind merge
#   --output_dir ${{ here.output }}/model: a fixed place that later steps and retries find
#   verify_merge.py: a merge is verified, not assumed (`verify: false` skips it)
mkdir -p "$RUN/steps/merge/output"
TRAIN_CHECKPOINT=$(ls -d "$RUN/steps/train/output"/checkpoint-* | grep -v -- -merged | sort -V | tail -n 1)
HF_HUB_OFFLINE=1 \
  OMP_NUM_THREADS=2 \
  swift export \
  --adapters "${TRAIN_CHECKPOINT}" \
  --merge_lora true \
  --output_dir "$RUN/steps/merge/output/model"
HF_HUB_OFFLINE=1 \
  OMP_NUM_THREADS=2 \
  python "$INSIDE/verify_merge.py" \
  --adapter "${TRAIN_CHECKPOINT}" \
  --merged "$RUN/steps/merge/output/model" \
  --out "$RUN/steps/merge/output/verify.json"

# infer (infer), after merge
#   --result_path ${{ here.output }}/result.jsonl: a fixed place that later steps find
mkdir -p "$RUN/steps/infer/output"
MERGE_MODEL="$RUN/steps/merge/output/model"
HF_HUB_OFFLINE=1 \
  OMP_NUM_THREADS=2 \
  swift infer \
  --model "${MERGE_MODEL}" \
  --val_dataset tiny/train.jsonl \
  --max_new_tokens 64 \
  --temperature 0 \
  --max_batch_size 8 \
  --result_path "$RUN/steps/infer/output/result.jsonl"

# serve (serve), after infer, merge
#   --host 127.0.0.1: only this host reaches it; `host: 0.0.0.0` in args opens it to the network
#   --port ${{ here.port.http }}: a leased port: ms-swift silently moves to another one when a port is busy
mkdir -p "$RUN/steps/serve/output"
MERGE_MODEL="$RUN/steps/merge/output/model"
HF_HUB_OFFLINE=1 \
  OMP_NUM_THREADS=2 \
  swift deploy \
  --model "${MERGE_MODEL}" \
  --served_model_name demo \
  --max_new_tokens 64 \
  --temperature 0 \
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
  "model": "demo",
  "messages": [
   {
    "role": "user",
    "content": "NPU 是什么？"
   }
  ],
  "max_tokens": 64,
  "temperature": 0
 },
 "expect": {
  "equals": "NPU 是专为神经网络计算设计的处理器。"
 },
 "timeout_s": 300.0,
 "out": "$RUN/steps/ask/output/answer.json"
}
EOF
HF_HUB_OFFLINE=1 \
  OMP_NUM_THREADS=2 \
  python "$INSIDE/probe.py" "$RUN/steps/ask/request.json"

# compare (command), after ask, base, serve
mkdir -p "$RUN/steps/compare/output"
BASE_OUTPUT_DIR="$RUN/steps/base/output"
SERVE_ENDPOINT=http://127.0.0.1:8000
cat > "$RUN/steps/compare/script.sh" <<'EOF'
python tiny/side_by_side.py --base "$BASE" --train tiny/train.jsonl --url "$URL" --model demo
EOF
HF_HUB_OFFLINE=1 \
  OMP_NUM_THREADS=2 \
  BASE="${BASE_OUTPUT_DIR}/model" \
  URL="${SERVE_ENDPOINT}" \
  RUNNER_OUTPUT="$RUN/steps/compare/output" \
  sh -eu "$RUN/steps/compare/script.sh"

kill -- -$SERVE_PID   # serve
