//! The sinks of the git store: they write to the repository, to the private objects, or only
//! compute ids.

use std::{
    fs::File,
    io::{self, Seek},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use gix::{hash::Kind as HashKind, objs::Kind};

use crate::{
    error::{Error, Result},
    fs::FileBuffer,
    model::ContentId,
    store::{
        objects::{Batch, Objects, ObjectsGuard, Taken, id_of, identify_file},
        plumbing::{
            objects::{LARGE_BYTES, Large, ObjectWriter, name_stream},
            repo::{Odb, Repo, content_id, name},
        },
        reading::Sink,
    },
};

/// How many times a large file is read if it shrinks meanwhile.
const TRIES: usize = 3;
/// How long a save waits for a sweep of private objects.
const PRIVATE_WAIT: Duration = Duration::from_secs(5);

/// The private objects; opened only if a save has private files.
pub(super) struct PrivateSink<'a> {
    objects: &'a Objects,
    batch: Option<Batch<'a>>,
}

impl<'a> PrivateSink<'a> {
    pub(super) fn new(objects: &'a Objects) -> Self {
        Self { objects, batch: None }
    }

    /// The batch; started on first use. From then on no private object is deleted.
    pub(super) fn batch(&mut self) -> Result<&Batch<'a>> {
        let batch = match self.batch.take() {
            Some(batch) => batch,
            None => self.objects.batch(Instant::now() + PRIVATE_WAIT)?,
        };
        Ok(self.batch.insert(batch))
    }

    /// Whether the batch was never started.
    pub(super) fn is_empty(&self) -> bool {
        self.batch.is_none()
    }

    /// Publishes the private objects. Hold the result until the record is written.
    pub(super) fn publish(self) -> Result<Option<ObjectsGuard>> {
        self.batch.map(Batch::publish).transpose()
    }
}

/// The sink of one reading thread.
pub(super) struct GitSink<'a, 'p> {
    hash: HashKind,
    buffer: FileBuffer,
    to: Option<(&'a ObjectWriter, &'a Mutex<PrivateSink<'p>>, Odb)>,
}

impl<'a, 'p> GitSink<'a, 'p> {
    /// A sink that stores what it is given.
    pub(super) fn storing(
        repo: &Repo,
        writer: &'a ObjectWriter,
        private: &'a Mutex<PrivateSink<'p>>,
    ) -> Result<Self> {
        let to = Some((writer, private, repo.odb()?.clone()));
        Ok(Self { hash: repo.hash, buffer: FileBuffer::default(), to })
    }

    /// A sink that only computes ids.
    pub(super) fn naming(repo: &Repo) -> Self {
        Self { hash: repo.hash, buffer: FileBuffer::default(), to: None }
    }

    /// Takes bytes in memory. Bytes of a known SHA-1 collision attack get no id; such a file counts
    /// as unreadable.
    fn small(&mut self, bytes: &[u8]) -> Result<io::Result<ContentId>> {
        let id = match name(self.hash, Kind::Blob, bytes) {
            Ok(id) => id,
            Err(err) => return Ok(Err(io::Error::other(err.to_string()))),
        };
        if let Some((writer, _, odb)) = &self.to {
            writer.add_named(Kind::Blob, id, bytes, odb)?;
        }
        Ok(Ok(content_id(&id)))
    }

    fn large(&mut self, file: &File, mut size: u64) -> Result<Taken> {
        for _ in 0..TRIES {
            let named = match &self.to {
                Some((writer, _, odb)) => writer.add_large(size, odb, || from_beginning(file)),
                None => from_beginning(file)
                    .map_err(Large::Read)
                    .and_then(|file| name_stream(self.hash, size, file)),
            };
            match named {
                Ok(Some(id)) => return Ok(Ok((content_id(&id), size))),
                Ok(None) => size = file.metadata().map_or(0, |data| data.len()),
                Err(Large::Read(err)) => return Ok(Err(err)),
                Err(Large::Write(err)) => return Err(self.failed(err)),
            }
        }
        Ok(Err(io::Error::other("it kept shrinking while it was read")))
    }

    fn failed(&self, source: io::Error) -> Error {
        match &self.to {
            Some((writer, _, _)) => Error::io("add objects to", writer.objects())(source),
            None => Error::Other { message: format!("cannot name a file: {source}"), hint: None },
        }
    }
}

fn from_beginning(mut file: &File) -> io::Result<&File> {
    file.rewind()?;
    Ok(file)
}

impl Sink for GitSink<'_, '_> {
    fn file(&mut self, file: &File, size: u64, private: bool) -> Result<Taken> {
        if private {
            return match &self.to {
                Some((_, to, _)) => {
                    let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
                    to.batch()?.put_file(file, size, &mut self.buffer)
                }
                None => Ok(identify_file(file)),
            };
        }
        if size > LARGE_BYTES {
            return self.large(file, size);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let taken = match buffer.read(file, size, LARGE_BYTES) {
            Err(err) => Ok(Err(err)),
            // It has grown since its stat.
            Ok(bytes) if bytes.len() as u64 > LARGE_BYTES => {
                self.large(file, file.metadata().map_or(size, |data| data.len()))
            }
            Ok(bytes) => self.small(bytes).map(|named| Ok((named?, bytes.len() as u64))),
        };
        self.buffer = buffer;
        taken
    }

    fn link(&mut self, text: &[u8], private: bool) -> Result<ContentId> {
        match &self.to {
            Some((_, to, _)) if private => {
                to.lock().unwrap_or_else(PoisonError::into_inner).batch()?.put_bytes(text)
            }
            None if private => Ok(id_of(text)),
            Some(_) | None => self.small(text)?.map_err(|err| self.failed(err)),
        }
    }
}
