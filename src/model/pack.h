// Pack: values as bytes and back, for the journal and its snapshots.
//
// A type says once which fields it has, by a function Fields(visitor, value) that names them in
// order; from it come the bytes, their reading, and the JSON that people see. Integers are
// variable-length, so a record of an event takes a few dozen bytes and a hundred thousand jobs load
// in a fraction of a second, which JSON would not. Fields are only ever added at the end: a reader
// that finds the bytes at an end leaves the rest at its default. An Unpacker trusts nothing:
// lengths are checked against what is there, and a fault makes it `bad` and yields empty values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/document_writer.h"

namespace muster::model {

template <typename T>
concept Whole = std::is_integral_v<T> || std::is_enum_v<T>;

class Packer {
 public:
  template <typename T>
  Packer& operator()(std::string_view /*name*/, const T& value) {
    Put(value);
    return *this;
  }

  template <Whole T>
  void Put(const T& value) {
    const auto number = static_cast<std::int64_t>(value);
    auto bits =
        (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63);
    for (; bits >= 0x80; bits >>= 7) out.push_back(static_cast<char>(bits | 0x80));
    out.push_back(static_cast<char>(bits));
  }
  void Put(const std::string& text) {
    Put(text.size());
    out += text;
  }
  template <typename T>
  void Put(const std::vector<T>& list) {
    Put(list.size());
    for (const auto& item : list) Put(item);
  }
  template <typename K, typename T>
  void Put(const std::map<K, T>& map) {
    Put(map.size());
    for (const auto& [key, value] : map) {
      Put(key);
      Put(value);
    }
  }
  template <typename T>
  void Put(const std::optional<T>& value) {
    Put(value.has_value());
    if (value) Put(*value);
  }
  template <typename T>
  void Put(const std::shared_ptr<const T>& value) {
    Put(value != nullptr);
    if (value != nullptr) Put(*value);
  }
  template <typename T>
    requires(std::is_class_v<T>)
  void Put(const T& value) {
    // Fields() serves reading too, so it takes a value that may be written; here it is not.
    Packer inner;
    Fields(inner, const_cast<T&>(value));
    Put(inner.out);
  }

  std::string out;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  Unpacker& operator()(std::string_view /*name*/, T& value) {
    if (!left_.empty()) Get(value);
    return *this;
  }

  template <Whole T>
  void Get(T& value) {
    std::uint64_t bits = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (left_.empty() || shift > 63) return Spoil();
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      bits |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    const auto number = static_cast<std::int64_t>((bits >> 1) ^ (~(bits & 1) + 1));
    value = static_cast<T>(number);
    if (static_cast<std::int64_t>(value) != number) Spoil();
  }
  void Get(std::string& text) {
    const std::size_t size = Size(1);
    text.assign(left_.substr(0, size));
    left_.remove_prefix(size);
  }
  template <typename T>
  void Get(std::vector<T>& list) {
    const std::size_t size = Size(1);
    list.clear();
    for (std::size_t i = 0; i < size && !bad_; ++i) Get(list.emplace_back());
  }
  template <typename K, typename T>
  void Get(std::map<K, T>& map) {
    const std::size_t size = Size(2);
    map.clear();
    for (std::size_t i = 0; i < size && !bad_; ++i) {
      K key{};
      Get(key);
      Get(map[std::move(key)]);
    }
  }
  template <typename T>
  void Get(std::optional<T>& value) {
    bool has = false;
    Get(has);
    value.reset();
    if (has && !bad_) Get(value.emplace());
  }
  template <typename T>
  void Get(std::shared_ptr<const T>& value) {
    bool has = false;
    Get(has);
    value.reset();
    if (!has || bad_) return;
    auto made = std::make_shared<T>();
    Get(*made);
    value = std::move(made);
  }
  template <typename T>
    requires(std::is_class_v<T>)
  void Get(T& value) {
    const std::size_t size = Size(1);
    Unpacker inner(left_.substr(0, size));
    left_.remove_prefix(size);
    value = T{};
    Fields(inner, value);
    if (inner.bad_) Spoil();
  }

  bool bad() const { return bad_; }

 private:
  // A count of things that take at least `each` bytes; no larger than what is left.
  std::size_t Size(std::size_t each) {
    std::int64_t size = 0;
    Get(size);
    if (size < 0 || static_cast<std::uint64_t>(size) > left_.size() / each) {
      Spoil();
      return 0;
    }
    return static_cast<std::size_t>(size);
  }
  void Spoil() {
    bad_ = true;
    left_ = {};
  }

  std::string_view left_;
  bool bad_ = false;
};

// The same fields as a tree that is written as JSON or YAML. What is empty is left out.
class DocPacker {
 public:
  template <typename T>
  DocPacker& operator()(std::string_view name, const T& value) {
    if (!Empty(value)) model::Put(out, name, Node(value));
    return *this;
  }

  DocNode out = MapNode();

 private:
  template <typename T>
  static bool Empty(const T& value) {
    if constexpr (requires { value.empty(); }) return value.empty();
    if constexpr (requires { value.has_value(); }) return !value.has_value();
    if constexpr (requires { value.get(); }) return value.get() == nullptr;
    return false;
  }
  static DocNode Node(bool value) { return BoolNode(value); }
  static DocNode Node(const std::string& text) { return TextNode(text); }
  template <Whole T>
    requires(!std::is_same_v<T, bool>)
  static DocNode Node(const T& value) {
    if constexpr (requires { Name(value); }) {
      return TextNode(Name(value));
    } else if constexpr (requires { NameOf(value); }) {
      return TextNode(NameOf(value));
    } else if (std::is_same_v<T, std::int64_t> && static_cast<std::int64_t>(value) == INT64_MAX) {
      return TextNode("unlimited");
    } else {
      return NumberNode(static_cast<std::int64_t>(value));
    }
  }
  template <typename T>
  static DocNode Node(const std::vector<T>& list) {
    DocNode node = ListNode();
    for (const auto& item : list) node.children.push_back(Node(item));
    return node;
  }
  template <typename K, typename T>
  static DocNode Node(const std::map<K, T>& map) {
    DocNode node = MapNode();
    for (const auto& [key, value] : map) {
      if constexpr (std::is_convertible_v<K, std::string_view>) {
        model::Put(node, key, Node(value));
      } else {
        model::Put(node, Node(key).text, Node(value));
      }
    }
    return node;
  }
  template <typename T>
  static DocNode Node(const std::optional<T>& value) {
    return Node(*value);
  }
  template <typename T>
  static DocNode Node(const std::shared_ptr<const T>& value) {
    return Node(*value);
  }
  template <typename T>
    requires(std::is_class_v<T>)
  static DocNode Node(const T& value) {
    if constexpr (requires { ToNode(value); }) {
      return ToNode(value);
    } else {
      DocPacker inner;
      Fields(inner, const_cast<T&>(value));
      return std::move(inner.out);
    }
  }
};

template <typename T>
std::string Pack(const T& value) {
  Packer packer;
  Fields(packer, const_cast<T&>(value));
  return std::move(packer.out);
}

}  // namespace muster::model
