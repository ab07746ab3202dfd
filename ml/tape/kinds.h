#ifndef PARASOL_ML_TAPE_KINDS_H_
#define PARASOL_ML_TAPE_KINDS_H_

#include "ml/tape/operation.h"

// All kinds of operations (ml/tape/operation.h).
namespace parasol {

// ml/tape/elementwise.h
extern const TapeOperationKind kAdd, kSubtract, kMultiply, kDivide, kMaximum,
    kMinimum, kNegate, kExp, kLog, kLog1p, kSqrt, kSquare, kPower, kAbs, kSign,
    kTanh, kSigmoid, kRelu, kSoftplus, kClipByValue, kEqual, kNotEqual,
    kGreater, kGreaterEqual, kLess, kLessEqual, kSelect, kCast;

// ml/tape/broadcast.h
extern const TapeOperationKind kBroadcastTo;

// ml/tape/reduce.h
extern const TapeOperationKind kReduceSum, kReduceMax, kReduceMin, kArgMax;

// ml/tape/matmul.h
extern const TapeOperationKind kMatMul;

// ml/tape/softmax.h
extern const TapeOperationKind kSoftmax, kLogSoftmax;

// ml/tape/arrange.h
extern const TapeOperationKind kReshape, kTranspose, kConcat, kSlice, kPad,
    kGather, kSegmentSum, kOneHot;

// ml/tape/random.h
extern const TapeOperationKind kRandomUniform, kRandomNormal,
    kRandomCategorical;

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_KINDS_H_
