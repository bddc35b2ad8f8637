#include "client/event_reader.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::client {
namespace {

TEST(EventReader, HearsTheSameEventsHoweverTheyAreCut) {
  const std::string stream =
      ": muster\n\nid: 7\ndata: one\n\n: still here\n\nevent: end\r\ndata:a\r\ndata: b\r\n\r\n"
      "id: 8\n\ndata: not yet";
  for (std::size_t size = 1; size <= stream.size(); ++size) {
    std::vector<StreamEvent> heard;
    EventReader reader([&](const StreamEvent& event) { heard.push_back(event); });
    for (std::size_t at = 0; at < stream.size(); at += size) reader.Add(stream.substr(at, size));
    ASSERT_EQ(heard.size(), 2U) << size;
    EXPECT_EQ(heard[0].id, "7");
    EXPECT_EQ(heard[0].name, "");
    EXPECT_EQ(heard[0].data, "one");
    EXPECT_EQ(heard[1].id, "");
    EXPECT_EQ(heard[1].name, "end");
    EXPECT_EQ(heard[1].data, "a\nb");
  }
}

}  // namespace
}  // namespace muster::client
