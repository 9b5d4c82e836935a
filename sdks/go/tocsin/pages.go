package tocsin

import (
	"context"
	"iter"
)

// noMembers is an empty object.
type noMembers struct{}

func (noMembers) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

// pages reads page by page while they are iterated over. It ends after an error.
func pages[T any](ctx context.Context, fetch func(ctx context.Context, cursor string) ([]T, string, error)) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		for cursor := ""; ; {
			page, next, err := fetch(ctx, cursor)
			if !yield(page, err) || err != nil || next == "" {
				return
			}
			cursor = next
		}
	}
}

// elements are those of all pages.
func elements[T any](pages iter.Seq2[[]T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for page, err := range pages {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page {
				if !yield(&page[i], nil) {
					return
				}
			}
		}
	}
}
