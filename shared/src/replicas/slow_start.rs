//! How many calls to make at once when the first may tell that all would fail.
//!
//! Left out: the calls themselves, which are `control`'s.

/// The sizes of the batches that `count` calls are made in: 1, 2, 4, … and what remains. Go on to the next batch only
/// if every call of the last succeeded: a quota that refuses pods then costs one call and not five hundred.
///
/// Source: `slowStartBatch`, `pkg/controller/replicaset/replica_set.go`; `SlowStartInitialBatchSize`,
/// `pkg/controller/controller_utils.go`.
pub fn batch_sizes(count: usize) -> impl Iterator<Item = usize> {
    let mut remaining = count;
    let mut size = 1_usize;
    std::iter::from_fn(move || {
        let batch = size.min(remaining);
        remaining -= batch;
        size = size.saturating_mul(2);
        (batch > 0).then_some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(count: usize, sizes: &[usize]) {
        assert_eq!(batch_sizes(count).collect::<Vec<_>>(), sizes);
    }

    #[test]
    fn batches_double_until_nothing_remains() {
        check(0, &[]);
        check(1, &[1]);
        check(2, &[1, 1]);
        check(10, &[1, 2, 4, 3]);
        check(500, &[1, 2, 4, 8, 16, 32, 64, 128, 245]);
        assert_eq!(batch_sizes(usize::MAX).sum::<usize>(), usize::MAX);
    }

    /// How many calls succeed and how many are made if only the first `limit` calls can succeed.
    fn run(count: usize, limit: usize) -> (usize, usize) {
        let mut calls = 0;
        for batch in batch_sizes(count) {
            calls += batch;
            if calls > limit {
                break;
            }
        }
        (calls.min(limit), calls)
    }

    /// Upstream's `TestSlowStartBatch` and `TestSyncReplicaSetCreateFailures`.
    #[test]
    fn a_failure_ends_after_its_batch() {
        assert_eq!(run(10, 0), (0, 1));
        assert_eq!(run(10, 10), (10, 10));
        assert_eq!(run(10, 5), (5, 7));
        assert_eq!(run(100, 10), (10, 15));
    }
}
