#ifndef PARASOL_STORAGE_CHECKED_FILE_SYSTEM_H_
#define PARASOL_STORAGE_CHECKED_FILE_SYSTEM_H_

#include <memory>

#include "rocksdb/env.h"
#include "storage/checked_file.h"

namespace parasol {

// Returns the file system in which RocksDB opens `file`, under whatever name,
// so that all that it reads is read by `file`, which must outlive it.
std::unique_ptr<rocksdb::Env> NewCheckedEnv(CheckedFile& file);

}  // namespace parasol

#endif  // PARASOL_STORAGE_CHECKED_FILE_SYSTEM_H_
