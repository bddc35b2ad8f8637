// Screen: what a full-screen view shows, as cells, and the bytes that bring a terminal there.
//
// A frame is drawn anew each time; Draw() compares it with the last one and writes only the runs of
// cells that differ, so a view that hardly changes hardly costs anything over a slow line. Text is
// UTF-8; a character that moves the cursor or is none is shown as `?`, so nothing that a job is
// named can take the terminal over. Without colour, ink is bold, dim or inverse, or nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

// The whole window, without colours, with the cursor at its top.
inline constexpr const char* kClearScreen = "\033[0m\033[H\033[2J";

enum class Ink : std::uint8_t { kPlain, kBold, kDim, kInverse, kRed, kGreen, kYellow, kCyan };

class Screen {
 public:
  Screen(int rows, int cols, bool color);

  int rows() const { return rows_; }
  int cols() const { return cols_; }
  void Resize(int rows, int cols);  // the next Draw() writes everything

  void Clear();
  // Clipped at the right edge, or before `end`; returns the column behind it.
  int Put(int row, int col, std::string_view text, Ink ink = Ink::kPlain, int end = -1);
  void Fill(int row, Ink ink);  // the whole row, as far as nothing is there

  std::string Draw();
  std::string Text() const;  // without ink, rows without what is blank at their ends

 private:
  struct Cell {
    char32_t glyph = U' ';  // 0: the second half of a wide one
    Ink ink = Ink::kPlain;
    friend bool operator==(const Cell&, const Cell&) = default;
  };
  std::string InkCode(Ink ink) const;
  std::size_t At(int row, int col) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(cols_) +
           static_cast<std::size_t>(col);
  }

  int rows_;
  int cols_;
  bool color_;
  bool known_ = false;  // what the terminal shows
  std::vector<Cell> cells_;
  std::vector<Cell> shown_;
};

// Without sequences that move the cursor or change colours, and without other control characters;
// a carriage return begins the line anew, as a progress bar means it.
std::string PlainLine(std::string_view text);

}  // namespace muster::cli
