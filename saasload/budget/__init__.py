"""Budgets that several processes share: one door for calls, and the stores behind it."""

from saasload.budget.opening import COMMON_EPOCH_S, open_store, store_name
from saasload.budget.shared import SharedBudget, Ticket, Wait
from saasload.budget.store import MemoryStore, Store, StoreLostError

__all__ = [
    "COMMON_EPOCH_S",
    "MemoryStore",
    "SharedBudget",
    "Store",
    "StoreLostError",
    "Ticket",
    "Wait",
    "open_store",
    "store_name",
]
