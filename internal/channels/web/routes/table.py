"""The route table: the path, request and response of every endpoint.

The router, the OpenAPI document, the page's types and the middleware tests are built from it.
"""

import sys

import msgspec
from starlette.responses import Response

from internal.agent.app.access import PairingCode
from internal.agent.app.files.session_files import MAX_FILE_BYTES
from internal.agent.app.files.worktree_changes import AppliedChanges
from internal.agent.app.queries import QuestionView
from internal.agent.app.runs.creation import Submitted
from internal.agent.app.task_commands import Steered
from internal.agent.app.waiting_messages import WaitingMessage
from internal.agent.domain.tasks import Attachment
from internal.agent.ports.commands import BackgroundCommand, PrintedOutput
from internal.agent.ports.mcp import (
    MAX_START_SECONDS,
    LoginUrl,
    McpReviewReport,
    McpServerSummary,
)
from internal.agent.ports.skills import SkillReviewReport, SkillSummary
from internal.agent.ports.workspaces import TreePage
from internal.channels.web.completions.answers import MAX_RUN_SECONDS
from internal.channels.web.completions.chat_completions import (
    ChatCompletionRequest,
    create_chat_completion,
)
from internal.channels.web.completions.completion_objects import ChatCompletion
from internal.channels.web.completions.models import (
    CompletionModel,
    CompletionModels,
    list_completion_models,
    show_completion_model,
)
from internal.channels.web.completions.response_objects import ResponseObject
from internal.channels.web.completions.responses import (
    CreateResponseRequest,
    create_response,
    show_response,
)
from internal.channels.web.endpoints import ApiRequest, Endpoint
from internal.channels.web.openapi import document
from internal.channels.web.routes import (
    artifacts,
    attachments,
    changes,
    dead_letters,
    events,
    feedback,
    login,
    meta,
    people,
    questions,
    reviews,
    sessions,
    setup,
    tasks,
    usage,
)
from internal.channels.web.routes.artifacts import (
    ArtifactsPage,
    ArtifactsQuery,
    ArtifactView,
    ContentQuery,
    UpdateArtifactRequest,
)
from internal.channels.web.routes.attachments import (
    UnusedFilesQuery,
    UnusedFilesView,
    UploadQuery,
    UploadView,
)
from internal.channels.web.routes.changes import (
    ChangeDiffView,
    ChangesQuery,
    ChangesView,
    FileChangeView,
    TreeQuery,
    WorkspaceFileQuery,
)
from internal.channels.web.routes.dead_letters import (
    DeadLettersQuery,
    DeadLettersView,
    RetryRequest,
)
from internal.channels.web.routes.feedback import FeedbackQuery, FeedbackView
from internal.channels.web.routes.login import LinkView, LoginRequest, LoginView
from internal.channels.web.routes.meta import ProcessesView
from internal.channels.web.routes.people import (
    AuditQuery,
    AuditView,
    CreatePairingRequest,
    PeopleView,
    RulesView,
)
from internal.channels.web.routes.questions import AnswerRequest, QuestionsPage, QuestionsQuery
from internal.channels.web.routes.reviews import (
    McpServersView,
    ReviewRequest,
    ReviewSkillRequest,
    SkillsView,
)
from internal.channels.web.routes.sessions import CommandsView
from internal.channels.web.routes.setup import (
    CheckKeyRequest,
    CheckLarkRequest,
    ChooseModelRequest,
    LarkAppRequest,
    StoreKeyRequest,
)
from internal.channels.web.routes.tasks import TaskDetails, TasksPage
from internal.channels.web.routes.usage import UsageQuery, UsageView
from internal.channels.web.schemas import (
    MAX_WAIT_SECONDS,
    CreateAttachmentRequest,
    CreatedTask,
    CreateSessionRequest,
    CreateTaskQuery,
    CreateTaskRequest,
    EditWaitingRequest,
    EmptyRequest,
    EventsPage,
    EventsQuery,
    FeedbackRequest,
    ForkSessionRequest,
    HealthSummary,
    MessagesPage,
    MessagesQuery,
    MeView,
    MovedSessionView,
    MoveSessionRequest,
    ProfilesView,
    SessionsPage,
    SessionsQuery,
    SessionView,
    SteerRequest,
    StopTaskRequest,
    StopView,
    StreamQuery,
    TasksQuery,
    TaskView,
    UpdateSessionRequest,
)
from internal.channels.web.services import (
    Finding,
    Findings,
    Health,
    LarkAppView,
    ModelsView,
    ProvidersView,
    ServerModelsView,
)


async def show_openapi(request: ApiRequest[EmptyRequest, EmptyRequest]) -> Response:
    """Return the OpenAPI 3.1 document of the API."""
    content = document(ENDPOINTS, request.services.version)
    return Response(msgspec.json.encode(content), media_type="application/json")


_SESSION = "/api/sessions/{session_id}"
_WAITING = f"{_SESSION}/waiting/{{number}}"
_CHANGE = f"{_SESSION}/changes/{{change_id}}"
_ARTIFACT = "/api/artifacts/{artifact_id}"
_QUESTION = "/api/questions/{question_id}"
_SKILL_REVIEW = "/api/skills/{name}/review"
_MCP_REVIEW = "/api/mcp/servers/{name}/review"
_STREAM = "text/event-stream"
_HTML = "text/html"
_BYTES = "application/octet-stream"
_PICTURE = "image/*"

_CODE_BODY_BYTES = 4_096
_FEEDBACK_BODY_BYTES = 65_536
_ANSWER_BODY_BYTES = 1_048_576
_MESSAGE_BODY_BYTES = 4_194_304
"""The longest text, with each character escaped."""
_FILES_BODY_BYTES = sys.maxsize
"""Limited by `server.max_body_bytes` alone."""

HEALTH = Endpoint(
    "GET", "/health", meta.show_health, Health, public_reply=HealthSummary, public=True
)
"""All that a worker serves."""

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST",
        "/api/tasks",
        tasks.create_task,
        CreatedTask,
        201,
        query=CreateTaskQuery,
        body=CreateTaskRequest,
        max_wait_seconds=MAX_WAIT_SECONDS,
        errors=(404, 409),
        max_body_bytes=_FILES_BODY_BYTES,
    ),
    Endpoint(
        "POST",
        "/v1/chat/completions",
        create_chat_completion,
        ChatCompletion,
        body=ChatCompletionRequest,
        max_wait_seconds=MAX_RUN_SECONDS,
        errors=(404, 409, 502),
        max_body_bytes=_FILES_BODY_BYTES,
    ),
    Endpoint(
        "POST",
        "/v1/responses",
        create_response,
        ResponseObject,
        body=CreateResponseRequest,
        max_wait_seconds=MAX_RUN_SECONDS,
        errors=(404, 409, 502),
        max_body_bytes=_FILES_BODY_BYTES,
    ),
    Endpoint("GET", "/v1/responses/{response_id}", show_response, ResponseObject),
    Endpoint("GET", "/v1/models", list_completion_models, CompletionModels),
    Endpoint(
        "GET",
        "/v1/models/{model}",
        show_completion_model,
        CompletionModel,
        takes_slashes=True,
    ),
    Endpoint("GET", "/api/tasks", tasks.list_tasks, TasksPage, query=TasksQuery, errors=(404,)),
    Endpoint("GET", "/api/tasks/{task_id}", tasks.show_task, TaskDetails),
    Endpoint(
        "POST",
        "/api/tasks/{task_id}/stop",
        tasks.stop_task,
        StopView,
        body=StopTaskRequest,
        errors=(409,),
    ),
    Endpoint(
        "POST",
        "/api/tasks/{task_id}/background",
        tasks.move_task_to_background,
        TaskView,
        errors=(409,),
    ),
    Endpoint(
        "POST",
        "/api/tasks/{task_id}/steer",
        tasks.steer_task,
        Steered,
        body=SteerRequest,
        errors=(409,),
        max_body_bytes=_MESSAGE_BODY_BYTES,
    ),
    Endpoint(
        "POST", "/api/tasks/{task_id}/resume", tasks.resume_task, Submitted, 201, errors=(409,)
    ),
    Endpoint(
        "POST", "/api/tasks/{task_id}/apply", tasks.apply_changes, AppliedChanges, errors=(409,)
    ),
    Endpoint(
        "PUT",
        "/api/tasks/{task_id}/feedback",
        tasks.rate_task,
        TaskView,
        body=FeedbackRequest,
        errors=(409,),
        max_body_bytes=_FEEDBACK_BODY_BYTES,
    ),
    Endpoint(
        "GET",
        "/api/questions",
        questions.list_questions,
        QuestionsPage,
        query=QuestionsQuery,
        errors=(404,),
    ),
    Endpoint("GET", _QUESTION, questions.show_question, QuestionView),
    Endpoint(
        "POST",
        f"{_QUESTION}/answer",
        questions.answer_question,
        QuestionView,
        body=AnswerRequest,
        errors=(409,),
        max_body_bytes=_ANSWER_BODY_BYTES,
    ),
    Endpoint(
        "POST",
        "/api/sessions",
        sessions.create_session,
        SessionView,
        201,
        body=CreateSessionRequest,
    ),
    Endpoint(
        "GET",
        "/api/sessions",
        sessions.list_sessions,
        SessionsPage,
        query=SessionsQuery,
        errors=(404,),
    ),
    Endpoint("GET", _SESSION, sessions.show_session, SessionView),
    Endpoint("PATCH", _SESSION, sessions.change_session, SessionView, body=UpdateSessionRequest),
    Endpoint(
        "POST",
        f"{_SESSION}/fork",
        sessions.fork_session,
        SessionView,
        201,
        body=ForkSessionRequest,
        errors=(409,),
    ),
    Endpoint(
        "POST",
        f"{_SESSION}/move",
        sessions.move_session,
        MovedSessionView,
        body=MoveSessionRequest,
        errors=(409,),
    ),
    Endpoint("GET", f"{_SESSION}/commands", sessions.list_commands, CommandsView),
    Endpoint(
        "GET", f"{_SESSION}/commands/{{command_id}}/output", sessions.read_command, PrintedOutput
    ),
    Endpoint(
        "POST",
        f"{_SESSION}/commands/{{command_id}}/stop",
        sessions.stop_command,
        BackgroundCommand,
        body=EmptyRequest,
    ),
    Endpoint("DELETE", _SESSION, sessions.delete_session, None, 204, errors=(409,)),
    Endpoint(
        "GET", f"{_SESSION}/messages", sessions.list_messages, MessagesPage, query=MessagesQuery
    ),
    Endpoint(
        "PATCH",
        _WAITING,
        sessions.edit_waiting,
        WaitingMessage,
        body=EditWaitingRequest,
        errors=(403, 409),
        max_body_bytes=_MESSAGE_BODY_BYTES,
    ),
    Endpoint("DELETE", _WAITING, sessions.take_back, None, 204, errors=(403, 409)),
    Endpoint(
        "GET",
        f"{_SESSION}/events",
        sessions.list_events,
        EventsPage,
        query=EventsQuery,
        errors=(410,),
    ),
    Endpoint(
        "GET",
        "/api/sse",
        events.watch_events,
        query=StreamQuery,
        media_type=_STREAM,
        errors=(403, 404),
    ),
    Endpoint(
        "POST",
        "/api/attachments",
        attachments.create_attachment,
        Attachment,
        201,
        body=CreateAttachmentRequest,
        max_body_bytes=_FILES_BODY_BYTES,
    ),
    Endpoint(
        "PUT",
        "/api/attachments",
        attachments.upload_attachment,
        Attachment,
        201,
        query=UploadQuery,
        errors=(409, 422),
        max_body_bytes=MAX_FILE_BYTES,
        streams_body=True,
    ),
    Endpoint(
        "GET",
        "/api/attachments/{sha256}",
        attachments.download_attachment,
        media_type=_BYTES,
        errors=(416,),
    ),
    Endpoint(
        "GET",
        "/api/attachments/{sha256}/pages/{number}",
        attachments.show_page,
        media_type=_PICTURE,
    ),
    Endpoint("GET", "/api/attachments/{sha256}/upload", attachments.show_upload, UploadView),
    Endpoint(
        "GET",
        "/api/unused-files",
        attachments.find_unused_files,
        UnusedFilesView,
        query=UnusedFilesQuery,
        errors=(403,),
    ),
    Endpoint(
        "DELETE",
        "/api/unused-files",
        attachments.remove_unused_files,
        UnusedFilesView,
        query=UnusedFilesQuery,
        errors=(403,),
    ),
    Endpoint(
        "GET",
        "/api/artifacts",
        artifacts.list_artifacts,
        ArtifactsPage,
        query=ArtifactsQuery,
        errors=(404,),
    ),
    Endpoint("GET", _ARTIFACT, artifacts.show_artifact, ArtifactView),
    Endpoint(
        "PATCH", _ARTIFACT, artifacts.change_artifact, ArtifactView, body=UpdateArtifactRequest
    ),
    Endpoint(
        "GET",
        f"{_ARTIFACT}/content",
        artifacts.download_artifact,
        query=ContentQuery,
        media_type="*/*",
        errors=(416,),
    ),
    Endpoint(
        "GET",
        f"{_ARTIFACT}/pages/{{number}}",
        artifacts.show_page,
        media_type=_PICTURE,
    ),
    Endpoint(
        "GET",
        f"{_SESSION}/files.zip",
        artifacts.download_session_files,
        media_type="application/zip",
    ),
    Endpoint(
        "GET",
        f"{_SESSION}/changes",
        changes.list_changes,
        ChangesView,
        query=ChangesQuery,
        errors=(404,),
    ),
    Endpoint("GET", f"{_CHANGE}/diff", changes.show_diff, ChangeDiffView),
    Endpoint("POST", f"{_CHANGE}/undo", changes.undo_change, FileChangeView, errors=(409,)),
    Endpoint("GET", f"{_SESSION}/workspace", changes.list_workspace, TreePage, query=TreeQuery),
    Endpoint(
        "GET",
        f"{_SESSION}/workspace/content",
        changes.read_workspace_file,
        query=WorkspaceFileQuery,
        media_type="*/*",
        errors=(409,),
    ),
    Endpoint("GET", "/api/models", meta.list_models, ModelsView),
    Endpoint("GET", "/api/profiles", meta.list_profiles, ProfilesView),
    Endpoint("GET", "/api/skills", reviews.list_skills, SkillsView),
    Endpoint("GET", _SKILL_REVIEW, reviews.show_review, SkillReviewReport, errors=(403, 409)),
    Endpoint(
        "POST",
        _SKILL_REVIEW,
        reviews.review_skill,
        SkillSummary,
        body=ReviewSkillRequest,
        errors=(409,),
    ),
    Endpoint("GET", "/api/mcp/servers", reviews.list_mcp_servers, McpServersView),
    Endpoint("GET", _MCP_REVIEW, reviews.show_mcp_review, McpReviewReport, errors=(403, 409)),
    Endpoint(
        "POST",
        _MCP_REVIEW,
        reviews.review_mcp_server,
        McpServerSummary,
        body=ReviewRequest,
        errors=(409,),
    ),
    Endpoint(
        "POST",
        "/api/mcp/servers/{name}/test",
        reviews.test_mcp_server,
        McpReviewReport,
        max_wait_seconds=MAX_START_SECONDS,
        errors=(403, 409),
    ),
    Endpoint(
        "POST",
        "/api/mcp/servers/{name}/login",
        reviews.start_mcp_login,
        LoginUrl,
        max_wait_seconds=MAX_START_SECONDS,
        errors=(403, 409),
    ),
    Endpoint(
        "GET",
        reviews.MCP_CALLBACK,
        reviews.finish_mcp_login,
        query=reviews.LoginCallbackQuery,
        media_type="text/plain",
        max_wait_seconds=MAX_START_SECONDS,
        errors=(404, 409),
        public=True,
    ),
    Endpoint("GET", "/api/providers", setup.list_providers, ProvidersView, errors=(403, 409)),
    Endpoint(
        "POST",
        "/api/providers/{name}/check",
        setup.check_key,
        Finding,
        body=CheckKeyRequest,
        errors=(409,),
    ),
    Endpoint(
        "PUT",
        "/api/providers/{name}/key",
        setup.store_key,
        ProvidersView,
        body=StoreKeyRequest,
        errors=(409,),
    ),
    Endpoint(
        "GET",
        "/api/providers/{name}/models",
        setup.list_server_models,
        ServerModelsView,
        errors=(403, 409),
    ),
    Endpoint("DELETE", "/api/providers/{name}/key", setup.remove_key, ProvidersView, errors=(409,)),
    Endpoint(
        "PUT",
        "/api/models/default",
        setup.choose_model,
        ProvidersView,
        body=ChooseModelRequest,
        errors=(409,),
    ),
    Endpoint("GET", "/api/channels/lark", setup.show_lark, LarkAppView, errors=(403, 409)),
    Endpoint(
        "POST",
        "/api/channels/lark/check",
        setup.check_lark,
        Findings,
        body=CheckLarkRequest,
        errors=(409,),
    ),
    Endpoint(
        "PUT",
        "/api/channels/lark",
        setup.connect_lark,
        LarkAppView,
        body=LarkAppRequest,
        errors=(409,),
    ),
    Endpoint("DELETE", "/api/channels/lark", setup.disconnect_lark, LarkAppView, errors=(409,)),
    Endpoint("GET", "/api/usage", usage.list_usage, UsageView, query=UsageQuery, errors=(404,)),
    Endpoint("GET", "/api/rules", people.list_rules, RulesView, errors=(403,)),
    Endpoint("DELETE", "/api/rules/{number}", people.remove_rule, None, 204),
    Endpoint(
        "POST", "/api/pairings", people.create_pairing, PairingCode, 201, body=CreatePairingRequest
    ),
    Endpoint("GET", "/api/people", people.list_people, PeopleView, errors=(403,)),
    Endpoint("DELETE", "/api/people/{principal}", people.remove_person, None, 204),
    Endpoint(
        "GET", "/api/audit", people.list_audit_entries, AuditView, query=AuditQuery, errors=(403,)
    ),
    Endpoint(
        "GET",
        "/api/feedback",
        feedback.list_feedback,
        FeedbackView,
        query=FeedbackQuery,
        errors=(403,),
    ),
    Endpoint(
        "GET",
        "/api/dead-letters",
        dead_letters.list_dead_letters,
        DeadLettersView,
        query=DeadLettersQuery,
        errors=(403,),
    ),
    Endpoint(
        "POST",
        "/api/dead-letters/{letter_id}/retry",
        dead_letters.retry,
        None,
        204,
        body=RetryRequest,
        errors=(403, 409),
    ),
    Endpoint(
        "POST",
        "/api/dead-letters/{letter_id}/dismiss",
        dead_letters.dismiss,
        None,
        204,
        errors=(403,),
    ),
    Endpoint("GET", "/api/processes", meta.list_processes, ProcessesView, errors=(403,)),
    Endpoint(
        "POST",
        "/api/login",
        login.log_in,
        LoginView,
        body=LoginRequest,
        max_body_bytes=_CODE_BODY_BYTES,
        public=True,
    ),
    Endpoint("POST", "/api/logout", login.log_out, None, 204),
    Endpoint("POST", "/api/links", login.create_link, LinkView, 201),
    Endpoint("GET", "/api/me", meta.show_me, MeView),
    HEALTH,
    Endpoint("GET", "/api/openapi.json", show_openapi),
)
"""The endpoints of the API."""

PAGES: tuple[Endpoint, ...] = (
    Endpoint("GET", "/", meta.show_page, media_type=_HTML, public=True),
    Endpoint("GET", "/library", meta.show_page, media_type=_HTML, public=True),
    Endpoint("GET", "/settings", meta.show_page, media_type=_HTML, public=True),
    Endpoint("GET", "/settings/{section}", meta.show_page, media_type=_HTML, public=True),
    Endpoint("GET", "/tasks", meta.show_page, media_type=_HTML, public=True),
    Endpoint("GET", "/waiting", meta.show_page, media_type=_HTML, public=True),
    Endpoint("GET", "/sessions/{session_id}", meta.show_page, media_type=_HTML, public=True),
    Endpoint("GET", "/preview", meta.show_preview, media_type=_HTML, public=True),
    Endpoint("GET", "/assets/{name}", meta.show_asset, media_type="*/*", public=True),
    Endpoint("GET", "/icons/{name}", meta.show_icon, media_type="image/png", public=True),
    Endpoint("GET", "/manifest.webmanifest", meta.show_manifest, media_type="*/*", public=True),
    Endpoint(
        "GET", "/THIRD-PARTY-NOTICES.txt", meta.show_notices, media_type="text/plain", public=True
    ),
)
"""The page, which is public and loads its data from the API."""

ROUTES: tuple[Endpoint, ...] = (*ENDPOINTS, *PAGES)
