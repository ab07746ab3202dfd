#ifndef PARASOL_ML_INPUT_EXAMPLE_ORDER_H_
#define PARASOL_ML_INPUT_EXAMPLE_ORDER_H_

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace parasol {

// The examples of one shard and how far apart they may be taken.
struct ShardOrder {
  int64_t total = 0;  // examples in the set
  // The shard has examples `shard`, `shard + num_shards`, …
  int64_t shard = 0;
  int64_t num_shards = 1;
  // Examples are drawn from a buffer of so many, which is refilled in file
  // order, like tf.data's shuffle(). Up to 1 keeps file order; as many as the
  // shard has make every order equally likely.
  int64_t shuffle_buffer = 0;
  uint64_t seed = 0;
};

// Numbers of examples in the order in which a reader takes them. Each pass has
// each example of the shard once; pass n depends on (order, n) only, so is the
// same on every machine and does not need pass n - 1.
class ExampleOrder {
 public:
  explicit ExampleOrder(const ShardOrder& order) : order_(order) {}

  void StartPass(int64_t pass);

  // The next example of the pass, which must have been started; nullopt at its
  // end.
  std::optional<int64_t> Next();

 private:
  std::optional<int64_t> NextInFile();

  const ShardOrder order_;
  int64_t next_in_file_ = 0;
  std::vector<int64_t> buffer_;
  std::mt19937_64 random_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_EXAMPLE_ORDER_H_
