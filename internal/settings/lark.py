"""Settings of the Lark channel."""

from typing import Annotated, Self
from urllib.parse import SplitResult, unquote

from pydantic import AfterValidator, SecretStr, field_validator, model_validator

from internal.agent.domain.secrets import register_secret
from internal.normal_forms.addresses import is_loopback
from internal.normal_forms.urls import split_url
from internal.settings.chat import ChatChannelSettings
from internal.settings.messages import nearest
from internal.settings.types import File, Secret, Section, Text, key

ORIGINS = {"feishu": "https://open.feishu.cn", "lark": "https://open.larksuite.com"}
"""The addresses of the two services, by their names."""


LARK_EMOJI = frozenset(
    """
    OK THUMBSUP THANKS MUSCLE FINGERHEART APPLAUSE FISTBUMP JIAYI DONE SMILE BLUSH LAUGH SMIRK
    LOL FACEPALM LOVE WINK PROUD WITTY SMART SCOWL THINKING SOB CRY ERROR NOSEPICK HAUGHTY SLAP
    SPITBLOOD TOASTED GLANCE DULL INNOCENTSMILE JOYFUL WOW TRICK YEAH ENOUGH TEARS EMBARRASSED
    KISS SMOOCH DROOL OBSESSED MONEY TEASE SHOWOFF COMFORT CLAP PRAISE STRIVE XBLUSH SILENT WAVE
    WHAT FROWN SHY DIZZY LOOKDOWN CHUCKLE WAIL CRAZY WHIMPER HUG BLUBBER WRONGED HUSKY SHHH SMUG
    ANGRY HAMMER SHOCKED TERROR PETRIFIED SKULL SWEAT SPEECHLESS SLEEP DROWSY YAWN SICK PUKE
    BETRAYED HEADSET EatingFood MeMeMe Sigh Typing Lemon Get LGTM OnIt OneSecond VRHeadset
    YouAreTheBest SALUTE SHAKE HIGHFIVE UPPERLEFT ThumbsDown SLIGHT TONGUE EYESCLOSED RoarForYou
    CALF BEAR BULL RAINBOWPUKE ROSE HEART PARTY LIPS BEER CAKE GIFT CUCUMBER Drumstick Pepper
    CANDIEDHAWS BubbleTea Coffee Yes No OKR CheckMark CrossMark MinusOne Hundred AWESOMEN Pin
    Alarm Loudspeaker Trophy Fire BOMB Music XmasTree Snowman XmasHat FIREWORKS 2022 REDPACKET
    FORTUNE LUCK FIRECRACKER StickyRiceBalls HEARTBROKEN POOP StatusFlashOfInspiration 18X
    CLEAVER Soccer Basketball GeneralDoNotDisturb Status_PrivateMessage GeneralInMeetingBusy
    StatusReading StatusInFlight GeneralBusinessTrip GeneralWorkFromHome StatusEnjoyLife
    GeneralTravellingCar StatusBus GeneralSun GeneralMoonRest MoonRabbit Mooncake JubilantRabbit
    TV Movie Pumpkin BeamingFace Delighted ColdSweat FullMoonFace Partying GoGoGo ThanksFace
    SaluteFace Shrug ClownFace HappyDragon PursueUltimate Patient Ambitious CustomerSuccess
    Responsible Reliable GeneralVacation
    """.split()  # noqa: SIM905 - a list literal would have 189 lines
)
"""The emoji that Lark accepts as reactions; letter case matters, others are rejected (231001).

Source: open.feishu.cn, reference/im-v1/message-reaction/emojis-introduce.
"""


def _domain(text: str) -> str:
    if text in ORIGINS:
        return text
    parts = split_url(text)
    host = parts.hostname or ""
    safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    if not host or not safe or parts.path.rstrip("/") or parts.query or parts.fragment:
        raise ValueError(
            "must be feishu, lark, or an origin such as https://open.feishu.cn"
            " (http:// only for this machine)"
        )
    return text.rstrip("/")


def _proxy(value: SecretStr) -> SecretStr:
    """Register the password of a proxy as a secret. The address is checked if Lark is enabled."""
    if password := _split(value.get_secret_value()).password:
        register_secret(password)
        register_secret(unquote(password))
    return value


def _split(url: str) -> SplitResult:
    try:
        return split_url(url)
    except ValueError:  # an incomplete IPv6 address
        return split_url("")


def _is_http_proxy(url: str) -> bool:
    parts = _split(url)
    try:
        is_complete = bool(parts.hostname) and parts.port != 0
    except ValueError:  # not a port
        return False
    is_origin = parts.path in {"", "/"} and not parts.query and not parts.fragment
    return is_complete and is_origin and parts.scheme in {"http", "https"}


Domain = Annotated[Text, AfterValidator(_domain)]
Proxy = Annotated[SecretStr, AfterValidator(_proxy)]


class LarkAppSettings(Section):
    """The app and the service that it belongs to."""

    enabled: bool = key(False, "true connects to Lark; requires app_id and app_secret.")
    app_id: Text | None = key(None, "The app's id, such as cli_a1b2c3.")
    app_secret: Secret | None = key(None, "The app's secret.")
    domain: Domain = key("feishu", "feishu, lark, or the origin of a Lark server.")

    proxy: Proxy | None = key(
        None,
        "HTTP proxy on the way to Lark, such as http://proxy.example:3128; off for none; unset:"
        " HTTPS_PROXY or ALL_PROXY of the environment.",
    )
    no_proxy: tuple[Text, ...] = key(
        (), "Hosts that are reached without the proxy; unset: NO_PROXY of the environment."
    )
    ca_file: File | None = key(
        None, "PEM file with CA certificates to trust besides those of the system."
    )

    @model_validator(mode="after")
    def _has_credentials(self) -> Self:
        if self.enabled and (self.app_id is None or self.app_secret is None):
            missing = "app_id" if self.app_id is None else "app_secret"
            raise ValueError(
                f"enabled is true, but {missing} is not set; copy it from the app's page in the"
                " developer console"
            )
        return self

    @model_validator(mode="after")
    def _has_usable_proxy(self) -> Self:
        if self.enabled and self.proxy_url and not _is_http_proxy(self.proxy_url):
            raise ValueError(
                "proxy must be off or a URL such as http://proxy.example:3128; SOCKS is not"
                " supported (if proxy is not set, HTTPS_PROXY or ALL_PROXY is used)"
            )
        return self

    @property
    def proxy_url(self) -> str:
        """The URL of the proxy, which may contain a password; "" without a proxy."""
        url = "" if self.proxy is None else self.proxy.get_secret_value()
        return "" if url == "off" else url

    @property
    def origin(self) -> str:
        """The origin of REST calls and of endpoint discovery."""
        return ORIGINS.get(self.domain, self.domain)


class LarkSettings(ChatChannelSettings, LarkAppSettings):
    """The Lark (Feishu) channel."""

    @field_validator("react_emoji")
    @classmethod
    def _has_known_emoji(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        for name in (value,) if isinstance(value, str) else value:
            if name not in LARK_EMOJI and value != "off":
                raise ValueError(
                    f"must name emoji of Lark, such as Typing; unknown: {name}"
                    f"{nearest(name, sorted(LARK_EMOJI))}"
                )
        return value
