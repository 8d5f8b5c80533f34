//! Which checkpoints go when there is no room for all: the oldest of the root that could give most. Pure.

use crate::model::CheckpointId;

/// Something that takes room, and until when it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// How much room.
    pub bytes: u64,
    /// Who needs it: a place in the lines, and there the place of the last that does.
    pub until: Vec<(usize, usize)>,
}

/// Says which checkpoints go so that at least `excess` bytes are freed, in the order in which they
/// go. Each of `lines` has the checkpoints of one root that may go, the oldest first; `chunks` are
/// needed by nothing else.
///
/// The root that takes most room gives its first, again and again, so that no root pays for
/// another. A line that has nothing to give is left alone, even where that is not enough.
pub fn evict(
    lines: &[Vec<CheckpointId>],
    chunks: &[Chunk],
    excess: u64,
) -> Vec<(usize, CheckpointId)> {
    let mut held: Vec<u64> = vec![0; lines.len()];
    let mut last: Vec<Vec<Vec<usize>>> =
        lines.iter().map(|line| vec![Vec::new(); line.len()]).collect();
    for (n, chunk) in chunks.iter().enumerate() {
        for &(line, place) in &chunk.until {
            held[line] += chunk.bytes;
            last[line][place].push(n);
        }
    }
    let mut needed: Vec<usize> = chunks.iter().map(|chunk| chunk.until.len()).collect();
    let mut gone = vec![0; lines.len()];
    let (mut freed, mut goes) = (0, Vec::new());
    while freed < excess {
        let largest = (0..lines.len()).rev().max_by_key(|&line| held[line]);
        let Some(line) = largest.filter(|&line| held[line] > 0) else { break };
        for &n in &last[line][gone[line]] {
            held[line] -= chunks[n].bytes;
            needed[n] -= 1;
            freed += if needed[n] == 0 { chunks[n].bytes } else { 0 };
        }
        goes.push((line, lines[line][gone[line]]));
        gone[line] += 1;
    }
    goes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(ids: &[u64]) -> Vec<CheckpointId> {
        ids.iter().copied().map(CheckpointId::from_bits).collect()
    }

    fn chunk(bytes: u64, until: &[(usize, usize)]) -> Chunk {
        Chunk { bytes, until: until.to_vec() }
    }

    #[test]
    fn the_oldest_of_the_largest_goes_first() {
        let lines = [line(&[1, 2]), line(&[3, 4, 5]), line(&[6])];
        let chunks = [
            chunk(10, &[(0, 0)]),
            chunk(10, &[(0, 1)]),
            chunk(40, &[(1, 0)]),
            chunk(5, &[(1, 1)]),
            chunk(30, &[(1, 2)]),
        ];
        let goes = |excess| {
            let goes = evict(&lines, &chunks, excess);
            let place = |(at, id): (usize, CheckpointId)| {
                (at, lines[at].iter().position(|it| *it == id).unwrap())
            };
            goes.into_iter().map(place).collect::<Vec<_>>()
        };
        for (excess, expected) in [
            (0, &[][..]),
            (1, &[(1, 0)]),
            (40, &[(1, 0)]),
            (41, &[(1, 0), (1, 1)]),
            (46, &[(1, 0), (1, 1), (1, 2)]),
            // Now the first line is the largest.
            (76, &[(1, 0), (1, 1), (1, 2), (0, 0)]),
            // More than there is: the third line has nothing to give, and keeps its one.
            (1000, &[(1, 0), (1, 1), (1, 2), (0, 0), (0, 1)]),
        ] {
            assert_eq!(goes(excess), expected, "{excess}");
        }
    }

    #[test]
    fn what_two_need_is_free_when_both_have_gone() {
        let lines = [line(&[1]), line(&[2])];
        let shared = [chunk(10, &[(0, 0), (1, 0)])];
        assert_eq!(evict(&lines, &shared, 1).len(), 2);
        assert_eq!(evict(&lines, &[], 1), []);
    }
}
