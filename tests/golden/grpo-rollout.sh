# grpo-rollout: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/grpo-rollout"
set -m   # each service is a process group of its own, to be ended as a whole

# rollout (rollout)
#   --host 127.0.0.1: only this host reaches it; `host: 0.0.0.0` in args opens it to the network
#   --port ${{ here.port.http }}: a leased port: ms-swift silently moves to another one when a port is busy
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
mkdir -p "$RUN/steps/rollout/output"
TASK_QUEUE_ENABLE=0 \
  VLLM_ASCEND_ENABLE_NZ=0 \
  ASCEND_RT_VISIBLE_DEVICES=0,1 \
  swift rollout \
  --model Qwen/Qwen2.5-7B-Instruct \
  --vllm_tensor_parallel_size 2 \
  --vllm_max_model_len 3072 \
  --host 127.0.0.1 \
  --port 8000 &
ROLLOUT_PID=$!
until curl -sf http://127.0.0.1:8000/health/ >/dev/null; do sleep 1; done

# train (rlhf), after rollout
#   --output_dir ${{ here.output }}: one folder inside the run, so that later steps and retries find it
#   --add_version false: no dated sub-folder: one folder and one logging.jsonl over all retries
#   --check_model false: offline, ms-swift's look at the hub costs 22 s and no variable avoids it
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
#   NPROC_PER_NODE=6: one process per device (guide, FAQ Q7)
#   MASTER_PORT=${{ here.port.master }}: a port that no other job on this host uses
mkdir -p "$RUN/steps/train/output"
ROLLOUT_HOST=127.0.0.1
ROLLOUT_PORT=8000
TASK_QUEUE_ENABLE=0 \
  VLLM_ASCEND_ENABLE_NZ=0 \
  ASCEND_RT_VISIBLE_DEVICES=2,3,4,5,6,7 \
  NPROC_PER_NODE=6 \
  MASTER_PORT=29500 \
  swift rlhf \
  --rlhf_type grpo \
  --model Qwen/Qwen2.5-7B-Instruct \
  --dataset 'AI-MO/NuminaMath-TIR#5000' \
  --split_dataset_ratio 0.01 \
  --external_plugins plugins/keyword_reward.py \
  --reward_funcs keyword \
  --torch_dtype bfloat16 \
  --tuner_type full \
  --use_vllm true \
  --vllm_mode server \
  --vllm_server_host "${ROLLOUT_HOST}" \
  --vllm_server_port "${ROLLOUT_PORT}" \
  --num_generations 6 \
  --max_length 2048 \
  --max_completion_length 1024 \
  --temperature 1.0 \
  --beta 0.04 \
  --num_train_epochs 1 \
  --per_device_train_batch_size 4 \
  --gradient_accumulation_steps 2 \
  --learning_rate 1e-06 \
  --deepspeed zero3 \
  --log_completions true \
  --save_steps 100 \
  --save_total_limit 2 \
  --output_dir "$RUN/steps/train/output" \
  --add_version false \
  --check_model false

kill -- -$ROLLOUT_PID   # rollout
