# merge: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/merge"
INSIDE=$(runner plan --inside)   # the scripts that ship with the runner

# merge (merge)
#   --merge_lora true: kind merge
#   --output_dir ${{ here.output }}/model: a fixed place that later steps and retries find
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
#   verify_merge.py: a merge is verified, not assumed (`verify: false` skips it)
mkdir -p "$RUN/steps/merge/output"
ASCEND_RT_VISIBLE_DEVICES=0 \
  swift export \
  --adapters /data/out/checkpoint-100 \
  --merge_lora true \
  --output_dir "$RUN/steps/merge/output/model"
ASCEND_RT_VISIBLE_DEVICES=0 \
  python "$INSIDE/verify_merge.py" \
  --adapter /data/out/checkpoint-100 \
  --merged "$RUN/steps/merge/output/model" \
  --out "$RUN/steps/merge/output/verify.json"
