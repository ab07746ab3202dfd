#ifndef PARASOL_ML_OPTIMIZER_RULE_RULE_H_
#define PARASOL_ML_OPTIMIZER_RULE_RULE_H_

// A rule is the formula of one optimizer for one element. The numbers that are
// the same for all elements of an update are its members:
//
//   struct SgdRule {
//     static constexpr size_t kSlots = 0;
//     float learning_rate;
//     // Returns the value after the update from gradient, value and each slot.
//     // Slots are changed in place.
//     PARASOL_RULE float operator()(float g, float w) const {
//       return w - learning_rate * g;
//     }
//   };
//
// The loops of update_loop.h and the kernels of ml/optimizer/device are
// compiled from the same rules. Both give the same bits: each operation is
// rounded by IEEE 754, and -ffp-contract=off and -fmad=false (in the BUILD
// files) keep the compilers from fusing a multiplication and an addition. The
// exceptions are pow(), for which CUDA has a function of its own, and the bits
// of a NaN.

// Marks a rule's functions. On a CPU they must be inlined into the loop's
// function to be compiled for the same machine.
#ifdef __CUDACC__
#define PARASOL_RULE __host__ __device__ __forceinline__
#else
#define PARASOL_RULE __attribute__((always_inline)) inline
#endif

#endif  // PARASOL_ML_OPTIMIZER_RULE_RULE_H_
