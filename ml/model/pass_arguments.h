#ifndef PARASOL_ML_MODEL_PASS_ARGUMENTS_H_
#define PARASOL_ML_MODEL_PASS_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/kernel/pass_argument.h"
#include "ml/model/plan.h"

namespace parasol {

// Arguments of a model's kernels that differ from pass to pass, in the device's
// memory: the seed, and where the rows of tables are and how many. A recorded
// pass copies them too, so that each replay has its own. Not thread-safe.
class PassArguments {
 public:
  // `plan` and `device` must outlive this object. `tables`: number of tables.
  PassArguments(const Plan& plan, size_t tables, Device& device);

  // Allocates their memory, in the first call only.
  //   ResourceExhausted  the device is full.
  absl::Status Reserve();

  // Two functions that set what the next Load() copies. They may be called when
  // the work that was enqueued before the last pass's losses is done.
  void SetSeed(uint64_t seed);
  void SetRows(size_t table, const TableRows& rows);

  // Enqueues their copy on the compute stream; no copy if no kernel reads any.
  absl::Status Load();

  // Addresses in the device's memory, which stay the same. Null if no kernel
  // reads them.
  const uint64_t* seed() const;
  const TableRows* rows(size_t table) const;

 private:
  // Arguments of one table. The first one has the seed.
  struct Entry {
    uint64_t seed;
    TableRows rows;
  };

  bool is_empty() const { return entries_ == 0; }
  const Array<Entry>& where_read() const {
    return device_.shares_host_memory() ? host_ : on_device_;
  }

  Device& device_;
  const size_t entries_;
  Array<Entry> host_;
  Array<Entry> on_device_;  // empty on the CPU
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_PASS_ARGUMENTS_H_
