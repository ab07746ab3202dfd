#include "tests/benchmark/contender.h"

namespace parasol {

void Session::StartStep(absl::Span<const Exchange> exchanges) {
  for (const Exchange& exchange : exchanges.first(exchanges.size() - 1)) {
    Start(exchange);
    Finish();
  }
  Start(exchanges.back());
}

}  // namespace parasol
