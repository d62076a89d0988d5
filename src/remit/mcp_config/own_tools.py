"""The tools that coding agents have of their own, by the words with which each is told to leave them out."""

from __future__ import annotations

from typing import Final

SERVER: Final = "remit"
"""Remit's tools, as agents know them."""
CODEX: Final = (
    *("shell_tool", "unified_exec", "goals", "multi_agent", "image_generation", "apps", "plugins", "hooks"),
    *("browser_use", "browser_use_external", "computer_use", "in_app_browser", "sleep_tool", "skill_search"),
    *("code_mode_host", "view_image", "tool_suggest"),
)
"""Features that bring tools."""
GEMINI: Final = (
    *("list_directory", "read_file", "read_many_files", "write_file", "glob", "replace", "grep_search"),
    *("search_file_content", "run_shell_command", "web_fetch", "google_web_search", "save_memory", "write_todos"),
    *("activate_skill", "ask_user", "enter_plan_mode", "exit_plan_mode", "delegate_to_agent", "codebase_investigator"),
    *("cli_help", "generalist", "get_internal_docs", "update_topic", "complete_task", "invoke_agent"),
    *("list_mcp_resources", "read_mcp_resource", "list_background_processes", "read_background_output"),
)
"""Tools by name."""
