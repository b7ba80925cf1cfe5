"""What `import libra` gives; __init__.py imports each at its first use."""

from libra import kernels as kernels
from libra._attention import attention as attention
from libra._core import ConfigError as ConfigError
from libra._core import Error as Error
from libra._core import InputError as InputError
from libra._core import InternalError as InternalError
from libra._core import PackedSequence as PackedSequence
from libra._core import PlanError as PlanError
from libra._core import PlanOptions as PlanOptions
from libra._core import PoolPlan as PoolPlan
from libra._core import TransportError as TransportError
from libra._core import __version__ as __version__
from libra._core import assign_pools as assign_pools
from libra._core import check_window as check_window
from libra._core import make_plan as make_plan
from libra._core import parse_size as parse_size
from libra._core import sequence_cost as sequence_cost
from libra._lengths import read_lengths as read_lengths
from libra._plans import Plan as Plan
from libra._pool import Pool as Pool
from libra._pool import profile as profile
from libra.batches import Collator as Collator
from libra.batches import PackedDataset as PackedDataset
from libra.sampling import PackedBatch as PackedBatch
from libra.sampling import Planner as Planner
from libra.sampling import PooledBatchSampler as PooledBatchSampler
