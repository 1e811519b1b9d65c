# deploy: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/deploy"
set -m   # each service is a process group of its own, to be ended as a whole

# deploy (serve)
#   --served_model_name deploy: READY means an answer that knows this name
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
mkdir -p "$RUN/steps/deploy/output"
ASCEND_RT_VISIBLE_DEVICES=0 \
  swift deploy \
  --model Qwen/Qwen2-7B-Instruct \
  --host 0.0.0.0 \
  --port 8000 \
  --max_new_tokens 2048 \
  --served_model_name deploy &
DEPLOY_PID=$!
until curl -sf http://127.0.0.1:8000/v1/models >/dev/null; do sleep 1; done

trap 'kill -- -$DEPLOY_PID' INT; wait; trap - INT   # serving; Ctrl-C ends it
