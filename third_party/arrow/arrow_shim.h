#ifndef PARASOL_THIRD_PARTY_ARROW_ARROW_SHIM_H_
#define PARASOL_THIRD_PARTY_ARROW_ARROW_SHIM_H_

#include <stddef.h>
#include <stdint.h>

// The interface between Parasol and libparasol_arrow.so (arrow_shim.cc), which
// `deploy/arrow` compiles against Apache Arrow's headers and which is opened
// when a job has Parquet or Arrow files, or files in object stores. Only C
// crosses it: no exception, no class, no memory that the other side frees but
// by `release`.
//
// The functions of a file are for one thread at a time; any threads may call
// the ones of stores and objects at the same time. One that can fail returns 0,
// or else one of the numbers below or another one, and a text in `error`, which
// ends with a 0 within PARASOL_ARROW_ERROR_BYTES.

#ifdef __cplusplus
extern "C" {
#endif

// The structures of the Arrow C Data Interface, as its specification has them:
// https://arrow.apache.org/docs/format/CDataInterface.html
// (Apache License 2.0). The guard's name is the specification's, too.
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

#endif  // ARROW_C_DATA_INTERFACE

// Version of this interface; the functions of another one are not called.
#define PARASOL_ARROW_INTERFACE 5
#define PARASOL_ARROW_ERROR_BYTES 1024
#define PARASOL_ARROW_VERSION_BYTES 512
// Why a function failed.
#define PARASOL_ARROW_NO_MEMORY 2  // the machine lacks memory
// Failures of stores and objects alone:
#define PARASOL_ARROW_NOT_FOUND 3  // there is no such bucket, object or host
#define PARASOL_ARROW_REFUSED 4    // no credentials, or they don't allow it
#define PARASOL_ARROW_MAY_PASS 5  // network or server; the next try may succeed
#define PARASOL_ARROW_NO_TOKEN 6  // credentials lack, or the next try succeeds

// The bytes of a file, which outlive the file that is opened of them.
struct ParasolArrowInput {
  void* context;
  int64_t size;
  // Fills `out` with `size` bytes from `offset` on, which the file has, and
  // returns 0; not 0 if they can't be read, of which the caller knows more.
  int (*read)(void* context, int64_t offset, int64_t size, void* out);
};

struct ParasolArrowFile;

// Returns PARASOL_ARROW_INTERFACE as it was when the library was compiled.
int parasol_arrow_interface(void);

// Opens a file of Parquet or of Arrow IPC, which its first bytes tell apart.
int parasol_arrow_open(const struct ParasolArrowInput* input,
                       struct ParasolArrowFile** file, char* error);
void parasol_arrow_close(struct ParasolArrowFile* file);

// Sets `schema` to a struct of the file's columns; the caller releases it.
int parasol_arrow_schema(struct ParasolArrowFile* file,
                         struct ArrowSchema* schema, char* error);

// Returns the number of row groups, or of an Arrow file's record batches.
int64_t parasol_arrow_groups(const struct ParasolArrowFile* file);

// Returns the number of a group's rows, or -1 if it is only known as they are
// read.
int64_t parasol_arrow_rows(const struct ParasolArrowFile* file, int64_t group);

// Begins to read the columns with these numbers, which ascend, of a group.
int parasol_arrow_start(struct ParasolArrowFile* file, int64_t group,
                        const int* columns, size_t count, char* error);
// Sets `array` to a struct of the next rows, which the caller releases, or at
// the group's end to one whose `release` is null. Its buffers are as large as
// the lengths and the last offsets say; other offsets, the indices of
// dictionaries and the encoding of texts are not checked.
int parasol_arrow_next(struct ParasolArrowFile* file, struct ArrowArray* array,
                       char* error);

// A bucket of an object store, or the files of a cluster, and an object there.
struct ParasolArrowStore;
struct ParasolArrowObject;

// Opens a store: "s3://bucket?region=…", "gs://bucket", "hdfs://host:port".
// `libraries` is the folder of this library. Nothing is tried a second time.
// An open store stays open until the process ends, when all are finalized.
int parasol_arrow_store(const char* uri, const char* libraries,
                        struct ParasolArrowStore** store, char* error);

// Parts of a folder that is listed:
#define PARASOL_ARROW_FOLDER 0  // the files and folders in it
#define PARASOL_ARROW_ALL 1     // all files below it, perhaps with folders
#define PARASOL_ARROW_FILES 2   // the files in it, perhaps with folders
// Calls `visit` with each entry and the bytes that it has; of folders with -1.
// There is none if there is no such folder. A path in a store of a bucket
// begins with the bucket. The folders of Google's store are found by a look at
// all files.
int parasol_arrow_list(struct ParasolArrowStore* store, const char* folder,
                       int depth,
                       void (*visit)(void* context, const char* path,
                                     int64_t bytes),
                       void* context, char* error);

// Sets `bytes` to what an object has, or to -1 if the path is a folder.
int parasol_arrow_stat(struct ParasolArrowStore* store, const char* path,
                       int64_t* bytes, char* error);

// Opens an object. `version` is set to a text that another version of it does
// not have, within PARASOL_ARROW_VERSION_BYTES.
int parasol_arrow_object(struct ParasolArrowStore* store, const char* path,
                         struct ParasolArrowObject** object, int64_t* bytes,
                         char* version, char* error);
void parasol_arrow_object_close(struct ParasolArrowObject* object);

// Fills `out` with `size` bytes of an object from `offset` on, which it has.
// An answer with fewer is an error that may pass.
int parasol_arrow_object_read(struct ParasolArrowObject* object, int64_t offset,
                              int64_t size, void* out, char* error);

// Makes an object of the bytes of `input`, or replaces it, which is then there
// as a whole; after an error perhaps. Where `input` is large it is sent in
// parts, of which some are tried again.
int parasol_arrow_write(struct ParasolArrowStore* store, const char* path,
                        const struct ParasolArrowInput* input, char* error);

// Removes an object, or with `is_folder` all objects below a path. What is not
// there is no error.
int parasol_arrow_remove(struct ParasolArrowStore* store, const char* path,
                         int is_folder, char* error);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // PARASOL_THIRD_PARTY_ARROW_ARROW_SHIM_H_
