#ifndef PARASOL_WORKER_STORE_MICRO_BATCH_MODEL_H_
#define PARASOL_WORKER_STORE_MICRO_BATCH_MODEL_H_

#include <memory>

#include "ml/device/device.h"
#include "ml/model/model.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns a model that computes with at most train.micro_batch_size examples at
// a time. It cuts each batch into micro-batches, which differ by one example at
// most, runs one pass of `model` for each, and gives the mean of their
// gradients, each weighted by its examples, as the gradients of the batch: an
// id that several have is one row. A batch that is small enough is not cut.
// Variables that are not trained (moving means) get the mean of the
// micro-batches' changes.
//
// Gradients are added up in host memory, and device_training()'s, if `model`
// has one, in the memory of `device`, which computes: the bits are the same.
// The result takes no tables: UseTables() must not be called.
//
// Returns `model` itself if the job has no micro-batches. Borrows `device`.
std::unique_ptr<Model> SplitBatches(std::unique_ptr<Model> model,
                                    Device& device, const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_MICRO_BATCH_MODEL_H_
