# npu-check: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/npu-check"
INSIDE=$(runner plan --inside)   # the scripts that ship with the runner

# npu-check (check)
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
mkdir -p "$RUN/steps/npu-check/output"
ASCEND_RT_VISIBLE_DEVICES=0 \
  python "$INSIDE/check_npu.py" \
  --npus 1 \
  --out "$RUN/steps/npu-check/output/check.json"
