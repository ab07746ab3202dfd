#ifndef PARASOL_ML_TAPE_OPERATIONS_H_
#define PARASOL_ML_TAPE_OPERATIONS_H_

// All functions of tensors.

#include "ml/tape/arrange.h"      // IWYU pragma: export
#include "ml/tape/broadcast.h"    // IWYU pragma: export
#include "ml/tape/elementwise.h"  // IWYU pragma: export
#include "ml/tape/losses.h"       // IWYU pragma: export
#include "ml/tape/matmul.h"       // IWYU pragma: export
#include "ml/tape/random.h"       // IWYU pragma: export
#include "ml/tape/reduce.h"       // IWYU pragma: export
#include "ml/tape/softmax.h"      // IWYU pragma: export

#endif  // PARASOL_ML_TAPE_OPERATIONS_H_
