// EventReader: server-sent events out of a stream of bytes, however they are cut.
//
// The fields `id`, `event` and `data` count; comments and what is not known are passed over, and an
// event without data is none, as the standard has it. What is not complete waits, so whoever feeds
// it bounds it by what it feeds.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace muster::client {

struct StreamEvent {
  std::string id{};
  std::string name{};  // empty: it has none
  std::string data{};
};

class EventReader {
 public:
  explicit EventReader(std::function<void(const StreamEvent&)> on_event)
      : on_event_(std::move(on_event)) {}

  void Add(std::string_view bytes);

 private:
  void Line(std::string_view line);

  std::function<void(const StreamEvent&)> on_event_;
  std::string rest_;
  StreamEvent event_;
  bool has_data_ = false;
};

}  // namespace muster::client
