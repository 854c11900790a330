"""Skills: folders with a `SKILL.md` in the Agent Skills format.

Reading order: `skill_file` (the text of a `SKILL.md`), `skill_header` (its YAML), `skill_folder`
(the files of a folder and their hash), `errors`, `skill_places` (places of skills, also behind
links), `library` (the skills of several folders), `pins` (the skills that a person has accepted),
`installation` (adding and removing, also of `skill_archive`), `review` (facts for a person's
review), `script_needs` (requirements of scripts), `requested_tools` (the permission rules that a
skill requests), `pinned_reviews` (reviews from any channel), `presentation` (texts for the model),
`tool_source` (the tools).
"""
