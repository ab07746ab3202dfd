#ifndef PARASOL_PS_OPERATION_INLINE_FUNCTION_H_
#define PARASOL_PS_OPERATION_INLINE_FUNCTION_H_

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace parasol {

// A std::function that keeps its callable in itself, so that to make, copy and
// move one allocates nothing. A callable of more than `kBytes` does not
// compile. To call an empty one is undefined.
template <typename Signature, size_t kBytes>
class InlineFunction;

template <typename Result, typename... Arguments, size_t kBytes>
class InlineFunction<Result(Arguments...), kBytes> {
 public:
  InlineFunction() = default;
  // NOLINTNEXTLINE(google-explicit-constructor)
  InlineFunction(std::nullptr_t) {}

  template <typename Callable>
  requires(!std::is_same_v<std::decay_t<Callable>, InlineFunction> &&
           std::is_invocable_r_v<Result, std::decay_t<Callable>&, Arguments...>)
      // NOLINTNEXTLINE(google-explicit-constructor)
      InlineFunction(Callable&& callable) {
    using Kept = std::decay_t<Callable>;
    static_assert(sizeof(Kept) <= kBytes, "the callable is too large");
    static_assert(alignof(Kept) <= alignof(std::max_align_t));
    static_assert(std::is_nothrow_move_constructible_v<Kept>);
    new (memory_) Kept(std::forward<Callable>(callable));
    kind_ = &kKindOf<Kept>;
  }

  InlineFunction(const InlineFunction& other) : kind_(other.kind_) {
    if (kind_ != nullptr) kind_->copy(other.memory_, memory_);
  }
  InlineFunction(InlineFunction&& other) noexcept { Take(other); }
  InlineFunction& operator=(InlineFunction other) noexcept {
    Drop();
    Take(other);
    return *this;
  }
  ~InlineFunction() { Drop(); }

  explicit operator bool() const { return kind_ != nullptr; }

  // Calls the callable, which may change its own state, as a std::function's.
  Result operator()(Arguments... arguments) const {
    return kind_->call(memory_, std::forward<Arguments>(arguments)...);
  }

 private:
  struct Kind {
    Result (*call)(void* callable, Arguments&&... arguments);
    void (*copy)(const void* from, void* to);
    void (*move)(void* from, void* to);  // and destroys `from`
    void (*destroy)(void* callable);
  };

  template <typename Kept>
  static constexpr Kind kKindOf = {
      .call = [](void* callable, Arguments&&... arguments) -> Result {
        return (*static_cast<Kept*>(callable))(
            std::forward<Arguments>(arguments)...);
      },
      .copy = [](const void* from,
                 void* to) { new (to) Kept(*static_cast<const Kept*>(from)); },
      .move =
          [](void* from, void* to) {
            Kept* const moved = static_cast<Kept*>(from);
            new (to) Kept(std::move(*moved));
            moved->~Kept();
          },
      .destroy = [](void* callable) { static_cast<Kept*>(callable)->~Kept(); }};

  void Take(InlineFunction& other) {
    kind_ = std::exchange(other.kind_, nullptr);
    if (kind_ != nullptr) kind_->move(other.memory_, memory_);
  }
  void Drop() {
    if (kind_ != nullptr) kind_->destroy(memory_);
    kind_ = nullptr;
  }

  const Kind* kind_ = nullptr;
  alignas(std::max_align_t) mutable std::byte memory_[kBytes];
};

}  // namespace parasol

#endif  // PARASOL_PS_OPERATION_INLINE_FUNCTION_H_
