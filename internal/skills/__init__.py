"""Skills: folders with a `SKILL.md` in the Agent Skills format.

Reading order: `skill_file` (the text of a `SKILL.md`), `skill_header` (its YAML), `skill_folder`
(the files of a folder and their hash), `errors`, `skill_places` (where skills are found, also
behind links), `library` (the skills of several folders), `pins` (what a person has accepted),
`installation` (adding and removing, also of `skill_archive`), `review` (what a person should know
of a skill), `script_needs` (what its scripts need), `requested_tools` (the permission
rules that it asks for), `pinned_reviews` (reviews from any channel), `presentation` (what the model
reads), `tool_source` (the tools).
"""
