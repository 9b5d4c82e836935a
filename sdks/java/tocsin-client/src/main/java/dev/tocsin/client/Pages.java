package dev.tocsin.client;

import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.jspecify.annotations.Nullable;

/**
 * A list that is longer than an answer, read page by page while it is iterated over. Each iteration starts over.
 *
 * @param <T> the type of an element
 */
public final class Pages<T> implements Iterable<T> {
    private final AsyncPages<T> pages;

    Pages(AsyncPages<T> pages) {
        this.pages = pages;
    }

    /**
     * The pages; one may be empty without being the last.
     *
     * @return lists of elements, read as they are iterated over
     */
    public Iterable<List<T>> pages() {
        return () -> new PageIterator();
    }

    /**
     * All elements.
     *
     * @return a sequential stream, which reads pages as it needs them
     */
    public Stream<T> stream() {
        return StreamSupport.stream(pages().spliterator(), false).flatMap(List::stream);
    }

    @Override
    public Iterator<T> iterator() {
        PageIterator source = new PageIterator();
        return new Iterator<>() {
            private Iterator<T> page = List.<T>of().iterator();

            @Override
            public boolean hasNext() {
                while (!page.hasNext() && source.hasNext()) {
                    page = source.next().iterator();
                }
                return page.hasNext();
            }

            @Override
            public T next() {
                if (!hasNext()) {
                    throw new NoSuchElementException();
                }
                return page.next();
            }
        };
    }

    private final class PageIterator implements Iterator<List<T>> {
        private @Nullable String after;
        private boolean ended;

        @Override
        public boolean hasNext() {
            return !ended;
        }

        @Override
        public List<T> next() {
            if (ended) {
                throw new NoSuchElementException();
            }
            Page<T> page = Run.join(pages.page(after));
            after = page.next();
            ended = after == null;
            return page.items();
        }
    }
}
