"""What the site file says reaches the steps."""

from __future__ import annotations

from cli import Cli


def test_sites_variables_reach_the_steps_and_a_jobs_own_win(cli: Cli) -> None:
    (cli.home / "site.yaml").write_text("""
caches: {huggingface: ~/hf, modelscope: /data/ms}
mirrors: {hf_endpoint: "https://mirror.example"}
proxies: {http: "http://proxy.example:3128"}
offline: true
""")
    job = "name: x\nkind: command\ncommand: [env]\nenv: {MODELSCOPE_CACHE: /mine}\n"
    cli("submit", "--wait", cli.job(job), HOME="/home/me", HF_HOME="/elsewhere")
    env = dict(line.split("=", 1) for line in cli("logs").stdout.splitlines() if "=" in line)
    assert env["HF_HOME"] == "/home/me/hf"
    assert env["MODELSCOPE_CACHE"] == "/mine"
    assert (env["HF_ENDPOINT"], env["HF_HUB_OFFLINE"]) == ("https://mirror.example", "1")
    assert env["http_proxy"] == env["HTTP_PROXY"] == "http://proxy.example:3128"
    assert "127.0.0.1" in env["no_proxy"]
