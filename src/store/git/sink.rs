//! The sink of the git store: it writes to the private repository, or only computes ids.

use std::{
    fs::File,
    io::{self, Seek},
};

use gix::{hash::Kind as HashKind, objs::Kind};

use crate::{
    error::{Error, Result},
    fs::FileBuffer,
    model::ContentId,
    store::{
        objects::Taken,
        plumbing::{
            objects::{LARGE_BYTES, Large, ObjectWriter, name_stream},
            repo::{Odb, Repo, content_id, name},
        },
        reading::Sink,
    },
};

/// How many times a large file is read if it shrinks meanwhile.
const TRIES: usize = 3;

/// The sink of one reading thread.
pub(super) struct GitSink<'a> {
    hash: HashKind,
    buffer: FileBuffer,
    to: Option<(&'a ObjectWriter, Odb)>,
}

impl<'a> GitSink<'a> {
    /// A sink that stores what it is given.
    pub(super) fn storing(repo: &Repo, writer: &'a ObjectWriter) -> Result<Self> {
        let to = Some((writer, repo.odb()?.clone()));
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
        if let Some((writer, odb)) = &self.to {
            writer.add_named(Kind::Blob, id, bytes, odb)?;
        }
        Ok(Ok(content_id(&id)))
    }

    fn large(&mut self, file: &File, mut size: u64) -> Result<Taken> {
        for _ in 0..TRIES {
            let named = match &self.to {
                Some((writer, odb)) => writer.add_large(size, odb, || from_beginning(file)),
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
            Some((writer, _)) => Error::io("add objects to", writer.objects())(source),
            None => Error::Other { message: format!("cannot name a file: {source}"), hint: None },
        }
    }
}

fn from_beginning(mut file: &File) -> io::Result<&File> {
    file.rewind()?;
    Ok(file)
}

impl Sink for GitSink<'_> {
    fn file(&mut self, file: &File, size: u64) -> Result<Taken> {
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

    fn link(&mut self, text: &[u8]) -> Result<ContentId> {
        self.small(text)?.map_err(|err| self.failed(err))
    }
}
