# infer-base: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/infer-base"

# infer-base (infer)
#   --val_dataset ${{ here.dir }}/prompts.jsonl: the step's `prompts`, one row each
#   --result_path ${{ here.output }}/result.jsonl: a fixed place that later steps find
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
mkdir -p "$RUN/steps/infer-base/output"
cat > "$RUN/steps/infer-base/prompts.jsonl" <<'EOF'
{"messages": [{"role": "user", "content": "用一句话介绍昇腾NPU。"}]}
{"messages": [{"role": "user", "content": "Write a haiku about an NPU."}]}
EOF
ASCEND_RT_VISIBLE_DEVICES=0 \
  swift infer \
  --model Qwen/Qwen2-7B-Instruct \
  --stream true \
  --temperature 0 \
  --max_new_tokens 2048 \
  --val_dataset "$RUN/steps/infer-base/prompts.jsonl" \
  --result_path "$RUN/steps/infer-base/output/result.jsonl"
