"""Rebuilds the newest version of `parasol publish` that is whole (docs/publishing.md).

  python3 receive.py DIR OUTPUT.safetensors      (needs numpy and zstandard)

Every byte is compared with the manifest's SHA-256. A version that is damaged, or
that builds on one that is missing, damaged or another one, is passed over with a
line on stderr.
"""
import hashlib, json, os, re, struct, sys
import numpy, zstandard

TYPES = {"bfloat16": "BF16", "float32": "F32", "uint64": "U64"}


def check(is_so, what):
    if not is_so:
        raise ValueError(what)


def digest(tensors):
    return hashlib.sha256("".join(sorted("%s %s [%s] %s\n" % (
        name, tensor["dtype"], ",".join(map(str, tensor["shape"])), tensor["sha256"])
        for name, tensor in tensors.items())).encode()).hexdigest()


def read_version(folder, number):
    """Returns a version's manifest, and the bytes of its tensors or of their deltas."""
    with open(folder + "/manifest.json", "rb") as file:
        manifest, data = json.load(file), {}
    check(manifest["format_version"] == 1, "its format is not 1")
    check(manifest["version"] == number, "its manifest is of version %s" % manifest["version"])
    check(manifest["state_sha256"] == digest(manifest["tensors"]), "its manifest is damaged")
    for name, size in manifest["files"].items():
        with open(folder + "/" + name, "rb") as file:
            blob = file.read()
        check(len(blob) == size, "%s has %d of %d bytes" % (name, len(blob), size))
        if name.endswith(".safetensors"):
            start = 8 + struct.unpack("<Q", blob[:8])[0]
            for tensor, info in json.loads(blob[8:start]).items():
                if tensor != "__metadata__":
                    data[tensor] = blob[slice(*(start + offset for offset in info["data_offsets"]))]
    return manifest, data


def changed(form, state, delta):
    """Returns a tensor's new bytes."""
    state = numpy.frombuffer(state, numpy.uint8).copy()
    size = zstandard.frame_content_size(delta)
    check(size == len(state) if form == "xor" else 0 <= size <= 4 + 5 * len(state),
          "a delta of %d bytes for a tensor of %d" % (size, len(state)))
    delta = numpy.frombuffer(zstandard.ZstdDecompressor().decompress(delta), numpy.uint8)
    if form == "xor":
        return (state ^ delta).tobytes()
    count = int(delta[:4].view("<u4")[0])
    state[delta[4:4 + 4 * count].view("<u4")] = delta[4 + 4 * count:]
    return state.tobytes()


def rebuild(directory, number):
    """Returns a version's manifest, and the bytes of its tensors by their names."""
    chain, state, base = [], {}, None
    while not chain or chain[-1][0]["format"] != "full":
        below = number - len(chain)
        chain.append(read_version("%s/weight_v%06d" % (directory, below), below))
    for manifest, data in reversed(chain):
        check(manifest["base_state_sha256"] == base, "it builds on another state")
        for name, part in data.items():
            state[name] = changed(manifest["format"], state[name], part) if base else part
        base = manifest["state_sha256"]
    for name, tensor in manifest["tensors"].items():
        check(hashlib.sha256(state[name]).hexdigest() == tensor["sha256"], "wrong bytes of " + name)
    return manifest, {name: state[name] for name in manifest["tensors"]}


def versions(directory):
    names = (re.fullmatch(r"weight_v(\d{6,})", name) for name in os.listdir(directory))
    return sorted((int(name[1]) for name in names if name), reverse=True)


def receive(directory):
    """Returns rebuild() of the newest version that can be rebuilt."""
    listed = None
    while (numbers := versions(directory)) != listed:  # others may have replaced those listed
        listed = numbers
        for number in listed:
            try:
                return rebuild(directory, number)
            except (AttributeError, LookupError, MemoryError, OSError, RecursionError, TypeError,
                    ValueError, struct.error, zstandard.ZstdError) as error:
                print("passing over version %d: %s" % (number, str(error) or repr(error)), file=sys.stderr)
    sys.exit(directory + ": has no version that can be rebuilt")


def write(path, manifest, state):
    header, end = {}, 0
    for name, tensor in manifest["tensors"].items():
        header[name] = {"dtype": TYPES[tensor["dtype"]], "shape": tensor["shape"],
                        "data_offsets": [end, end := end + len(state[name])]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".new", "wb") as file:
        file.writelines([struct.pack("<Q", len(text)), text, *state.values()])
    os.replace(path + ".new", path)


if __name__ == "__main__":
    version, tensors = receive(sys.argv[1])
    write(sys.argv[2], version, tensors)
    print("version %d: step %d" % (version["version"], version["step"]))
