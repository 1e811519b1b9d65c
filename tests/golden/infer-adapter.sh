# infer-adapter: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/infer-adapter"

# infer-adapter (infer)
#   --result_path ${{ here.output }}/result.jsonl: a fixed place that later steps find
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
mkdir -p "$RUN/steps/infer-adapter/output"
ASCEND_RT_VISIBLE_DEVICES=0 \
  swift infer \
  --adapters /data/out/checkpoint-100 \
  --load_data_args true \
  --stream true \
  --temperature 0 \
  --max_new_tokens 2048 \
  --result_path "$RUN/steps/infer-adapter/output/result.jsonl"
