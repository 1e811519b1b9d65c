# eval: stack swift-4.3-cann9.0, generation A2
# In the job file's folder, with the stack's environment active:
RUN="$PWD/runs/eval"

# eval (eval)
#   --eval_output_dir ${{ here.output }}: the report stays inside the run's folder
#   ASCEND_RT_VISIBLE_DEVICES=${{ here.devices }}: the devices this step holds, as it sees them
mkdir -p "$RUN/steps/eval/output"
ASCEND_RT_VISIBLE_DEVICES=0 \
  swift eval \
  --model Qwen/Qwen2.5-7B-Instruct \
  --eval_backend Native \
  --infer_backend vllm \
  --eval_dataset gsm8k arc \
  --eval_limit 100 \
  --eval_output_dir "$RUN/steps/eval/output"
