"""Carry one request to the target and bring its reply back: the only room that knows httpx and aiohttp.

Every failure leaves here as `NotSentError` (no byte of the request left this machine: send it again) or as
`InDoubtError` (it may have been applied: look before sending again). What separates them is the *place* of the failure,
not its name: whatever fails while a connection is being made was never sent, whatever fails later may have been.
"""

from saasload.transport.client import App, open_client
from saasload.transport.network import Network
from saasload.transport.sender import Sender
from saasload.transport.token_file import TokenFile

__all__ = ["App", "Network", "Sender", "TokenFile", "open_client"]
