#ifndef PARASOL_LOOP_LOOP_H_
#define PARASOL_LOOP_LOOP_H_

// Everything that a program with a training loop of its own includes
// (docs/custom_loop.md).
#include "loop/arrays.h"
#include "loop/dataset.h"
#include "loop/distributed_dataset.h"
#include "loop/file_data.h"
#include "loop/metric.h"
#include "loop/model.h"
#include "loop/optimizer.h"
#include "loop/per_replica.h"
#include "loop/program.h"
#include "loop/replica_context.h"
#include "loop/strategy.h"
#include "loop/training.h"
#include "loop/variable.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"
#include "ml/tape/tensor.h"

#endif  // PARASOL_LOOP_LOOP_H_
