# publish: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/publish"

# publish (push)
#   --push_to_hub true: kind push
#   needs the secret MODELSCOPE_API_TOKEN
mkdir -p "$RUN/steps/publish/output"
swift export \
  --adapters /data/out/checkpoint-100 \
  --hub_model_id me/demo \
  --use_hf false \
  --push_to_hub true
