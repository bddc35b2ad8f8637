#include "client/event_reader.h"

namespace muster::client {

void EventReader::Add(std::string_view bytes) {
  for (auto end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    rest_ += bytes.substr(0, end);
    Line(std::string_view(rest_).substr(0, rest_.size() - (rest_.ends_with('\r') ? 1 : 0)));
    rest_.clear();
    bytes.remove_prefix(end + 1);
  }
  rest_ += bytes;
}

void EventReader::Line(std::string_view line) {
  if (line.empty()) {
    if (has_data_) on_event_(event_);
    event_ = {};
    has_data_ = false;
    return;
  }
  const auto colon = line.find(':');
  auto value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  const auto field = line.substr(0, colon);
  if (field == "id") event_.id = value;
  if (field == "event") event_.name = value;
  if (field != "data") return;
  if (has_data_) event_.data += '\n';
  event_.data += value;
  has_data_ = true;
}

}  // namespace muster::client
