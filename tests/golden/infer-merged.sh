# infer-merged: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/infer-merged"

# infer-merged (infer)
#   --val_dataset ${{ here.dir }}/prompts.jsonl: the step's `prompts`, one row each
#   --result_path ${{ here.output }}/result.jsonl: a fixed place that later steps find
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
mkdir -p "$RUN/steps/infer-merged/output"
cat > "$RUN/steps/infer-merged/prompts.jsonl" <<'EOF'
{"messages": [{"role": "user", "content": "用一句话介绍昇腾NPU。"}]}
{"messages": [{"role": "user", "content": "Write a haiku about an NPU."}]}
EOF
ASCEND_RT_VISIBLE_DEVICES=0 \
  swift infer \
  --model /data/out/model \
  --stream true \
  --temperature 0 \
  --max_new_tokens 2048 \
  --val_dataset "$RUN/steps/infer-merged/prompts.jsonl" \
  --result_path "$RUN/steps/infer-merged/output/result.jsonl"
