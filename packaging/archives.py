"""Archives that come out the same, byte for byte, whoever makes them, wherever and when."""

import email.utils
import gzip
import io
import os
import stat
import tarfile
import time
import zipfile


def epoch():
    """The moment that everything in a package bears."""
    return int(os.environ["SOURCE_DATE_EPOCH"])


def stamp():
    """That moment as Debian's change logs have it."""
    return email.utils.formatdate(epoch())


def write(path, data, mode=0o644):
    """A file, and the directories it is in, with permissions that no umask decides."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    path.chmod(mode)


def squeeze(data):
    """Bytes of gzip, with no name and no time in them."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as stream:
        stream.write(data)
    return buffer.getvalue()


def below(tree):
    """Every file and directory below `tree`, by name."""
    return sorted(tree.rglob("*"), key=lambda path: path.relative_to(tree).as_posix())


def tar_gz(path, tree, top):
    """All that is below `tree`, in an archive in which it is below `top`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for source in [tree, *below(tree)]:
            entry = tarfile.TarInfo((top / source.relative_to(tree)).as_posix())
            entry.mtime, entry.uname, entry.gname = epoch(), "root", "root"
            if source.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
                continue
            data = source.read_bytes()
            entry.size, entry.mode = len(data), stat.S_IMODE(source.stat().st_mode)
            tar.addfile(entry, io.BytesIO(data))
    path.write_bytes(squeeze(buffer.getvalue()))


def wheel_zip(path, members):
    """A zip of (name, bytes, mode), in that order."""
    moment = max(epoch(), 315532800)  # A zip knows no time before 1980.
    date = time.gmtime(moment)[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data, mode in members:
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = (stat.S_IFREG | mode) << 16
            entry.create_system = 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
