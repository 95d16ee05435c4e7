"""The contract of a store as one test class.

A back end's test file subclasses it and supplies two fixtures: ``store``, open and empty, and ``other``, open on the
same database (where there can be only one, the same store again).
"""

from tests.store.contract_appends import AppendContract, DeleteContract, ImportContract
from tests.store.contract_blobs import BlobContract
from tests.store.contract_feed import FeedContract, SubscribeContract
from tests.store.contract_owners import OwnerContract, PeerContract
from tests.store.contract_partials import PartialContract
from tests.store.contract_races import HintContract, RaceContract
from tests.store.contract_reads import ListContract, ReadContract
from tests.store.contract_segments import RebuildContract, SegmentContract
from tests.store.contract_workers import DueContract, LeaseContract


class StoreContract(
    AppendContract,
    ImportContract,
    DeleteContract,
    ReadContract,
    ListContract,
    LeaseContract,
    DueContract,
    HintContract,
    RaceContract,
    BlobContract,
    SegmentContract,
    RebuildContract,
    FeedContract,
    SubscribeContract,
    OwnerContract,
    PeerContract,
    PartialContract,
):
    """Every promise of ``store.contract``."""
