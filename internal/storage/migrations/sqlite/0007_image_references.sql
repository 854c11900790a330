-- Messages refer to pictures, which are in the attachment store, instead of containing them in
-- base64. `refer_to_images` is a function of the program; see `image_references`.

update messages set message = refer_to_images(message) where message like '%"type":"image"%';

update turn_log set message = refer_to_images(message) where message like '%"type":"image"%';
